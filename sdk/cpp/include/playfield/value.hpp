// Values that are read in place: states, replies, events, parsed JSON.

#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "result.hpp"

namespace playfield {

struct Entry;

/// A value in a tree, or none. It does not own the tree: that of a state lasts until the next
/// poll() that changes the state, that of an event until its callback returns. Used later, it is
/// none, which is checked. `keep()` makes a copy that lasts.
class Value {
public:
    Value() = default;
    explicit Value(pf_value raw) : raw_(raw) {}

    pf_kind kind() const { return pf_value_kind(raw_); }
    /// Whether there is a value.
    explicit operator bool() const { return kind() != PF_KIND_NONE; }
    bool is_null() const { return kind() == PF_KIND_NULL; }
    bool is_map() const { return kind() == PF_KIND_MAP; }
    bool is_list() const { return kind() == PF_KIND_LIST; }

    /// How many members or elements it has.
    std::size_t size() const { return pf_value_size(raw_); }

    /// The value at a path such as `players.7.hp`; none if there is none.
    Value operator[](std::string_view path) const {
        pf_value found{};
        (void)pf_value_get(raw_, detail::text(path), &found);
        return Value(found);
    }
    Value operator[](const char *path) const { return (*this)[std::string_view(path)]; }
    /// The element at an index, or the member whose name is that number.
    Value operator[](std::integral auto index) const { return member(std::to_string(index)); }

    /// The member of this name, which is not a path; or the element at this index.
    Value member(std::string_view name) const {
        pf_value found{};
        if (is_list()) {
            (void)pf_value_get(raw_, detail::text(name), &found);
        } else {
            (void)pf_value_member(raw_, detail::text(name), &found);
        }
        return Value(found);
    }

    /// Its members or elements; empty if it is neither map nor list.
    std::vector<Entry> entries() const;

    /// The value as a type: `bool`, a number, `std::string` or `std::string_view`. A view is valid
    /// as long as the value.
    template <class T> Result<T> get() const {
        if constexpr (std::is_same_v<T, bool>) {
            return read<bool>(pf_value_bool);
        } else if constexpr (std::is_floating_point_v<T>) {
            auto found = read<double>(pf_value_f64);
            if (!found) return found.error();
            return static_cast<T>(*found);
        } else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
            return narrow<T>(read<std::int64_t>(pf_value_i64));
        } else if constexpr (std::is_integral_v<T>) {
            return narrow<T>(read<std::uint64_t>(pf_value_u64));
        } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
            auto found = read<pf_text>(pf_value_text);
            if (!found) return found.error();
            return T(detail::view(*found));
        } else {
            static_assert(sizeof(T) == 0, "a bool, a number, std::string or std::string_view");
        }
    }

    /// The value as a type, or else `other`.
    template <class T> T as(T other = T()) const {
        auto found = get<T>();
        return found ? *found : other;
    }

    /// A copy of its text; empty if it is none.
    std::string text() const { return as<std::string>(); }

    /// Bytes, which are base64 in a value.
    Result<std::vector<std::byte>> bytes() const {
        auto found = read<pf_text>(pf_value_bytes);
        if (!found) return found.error();
        auto *first = reinterpret_cast<const std::byte *>(found->data);
        return std::vector<std::byte>(first, first + found->length);
    }

    /// The value as JSON; empty if there is none.
    std::string json() const {
        auto found = read<pf_text>(pf_value_json);
        return found ? std::string(detail::view(*found)) : std::string();
    }

    /// Whether both are equal; none is equal to none.
    bool operator==(const Value &other) const {
        bool equal = false;
        if (!*this || !other) return !*this && !other;
        (void)pf_value_equal(raw_, other.raw_, &equal);
        return equal;
    }

    /// A copy that lasts.
    Result<class Document> keep() const;

    pf_value raw() const { return raw_; }

private:
    template <class T> Result<T> read(pf_code (*reader)(pf_value, T *)) const {
        T found{};
        pf_code code = reader(raw_, &found);
        if (code != PF_CODE_OK) return detail::last_error(code);
        return found;
    }

    template <class T, class Wide> static Result<T> narrow(Result<Wide> found) {
        if (!found) return found.error();
        if (*found < static_cast<Wide>(std::numeric_limits<T>::min()) ||
            *found > static_cast<Wide>(std::numeric_limits<T>::max())) {
            return Error{PF_CODE_TYPE, std::to_string(*found) + " does not fit the type"};
        }
        return static_cast<T>(*found);
    }

    pf_value raw_{};
};

/// A member of a map, with its name, or an element of a list.
struct Entry {
    std::string_view key;
    Value value;
};

inline std::vector<Entry> Value::entries() const {
    std::vector<Entry> found;
    std::vector<pf_entry> raw(size());
    std::size_t written = 0;
    if (raw.empty() || pf_value_entries(raw_, 0, raw.data(), raw.size(), &written) != PF_CODE_OK) {
        return found;
    }
    found.reserve(written);
    for (const pf_entry &entry : std::span(raw.data(), written)) {
        found.push_back({detail::view(entry.key), Value(entry.value)});
    }
    return found;
}

/// A value with a tree of its own, which lasts as long as a copy of this.
class Document : public Value {
public:
    Document() = default;

    /// Parses JSON.
    static Result<Document> parse(std::string_view json) {
        pf_tree tree{};
        pf_value root{};
        pf_code code = pf_json_parse(detail::text(json), &tree, &root);
        if (code != PF_CODE_OK) return detail::last_error(code);
        return Document(tree, root);
    }

    /// Takes a tree, to be freed here.
    Document(pf_tree tree, pf_value root) : Value(root), owner_(std::make_shared<Owner>(tree)) {}

private:
    struct Owner {
        explicit Owner(pf_tree owned) : tree(owned) {}
        Owner(const Owner &) = delete;
        Owner &operator=(const Owner &) = delete;
        ~Owner() { (void)pf_tree_free(tree); }
        pf_tree tree;
    };
    std::shared_ptr<Owner> owner_;
};

inline Result<Document> Value::keep() const {
    pf_tree tree{};
    pf_value root{};
    pf_code code = pf_value_keep(raw_, &tree, &root);
    if (code != PF_CODE_OK) return detail::last_error(code);
    return Document(tree, root);
}

} // namespace playfield
