// Builds messages: a value as JSON text.

#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "value.hpp"

namespace playfield {

/// A value to send.
///
///     Json::object({{"angle", 1.5f}, {"name", "Ann"}, {"path", Json::array({1, 2})}})
class Json {
public:
    /// `null`.
    Json() : text_("null") {}
    Json(std::nullptr_t) : Json() {}
    Json(bool value) : text_(value ? "true" : "false") {}
    Json(const char *value) : Json(std::string_view(value)) {}
    Json(const std::string &value) : Json(std::string_view(value)) {}
    Json(std::string_view value) { quote(value, text_); }
    /// A copy of a value.
    Json(const Value &value) : text_(value.json()) {
        if (text_.empty()) text_ = "null";
    }
    template <class T> Json(const std::optional<T> &value) : Json() {
        if (value) *this = Json(*value);
    }

    template <std::integral T>
        requires(!std::same_as<T, bool>)
    Json(T value) {
        // Past 2^53 - 1 an integer is a text.
        constexpr std::int64_t most = (std::int64_t(1) << 53) - 1;
        bool is_long = std::cmp_greater(value, most) || std::cmp_less(value, -most);
        text_ = is_long ? '"' + std::to_string(value) + '"' : std::to_string(value);
    }

    template <std::floating_point T> Json(T value) {
        if (std::isnan(value)) {
            text_ = "\"NaN\"";
        } else if (std::isinf(value)) {
            text_ = value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
        } else {
            char digits[64];
            auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
            text_.assign(digits, end);
        }
    }

    /// A struct or a map.
    static Json object(std::initializer_list<std::pair<std::string_view, Json>> members = {}) {
        Json made(Raw{}, "{}");
        std::size_t bytes = 2;
        for (const auto &[name, value] : members) bytes += name.size() + value.text_.size() + 4;
        made.text_.reserve(bytes);
        for (const auto &[name, value] : members) made.set(name, value);
        return made;
    }

    /// A list.
    static Json array(std::initializer_list<Json> elements = {}) {
        Json made(Raw{}, "[]");
        for (const auto &element : elements) made.push(element);
        return made;
    }

    /// Text that is JSON already. It is checked when it is sent.
    static Json raw(std::string text) { return Json(Raw{}, std::move(text)); }

    /// Bytes, as base64.
    static Json bytes(std::span<const std::byte> bytes) {
        static constexpr char letters[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        std::string text;
        text.resize((bytes.size() + 2) / 3 * 4 + 2, '=');
        char *out = text.data();
        *out++ = '"';
        auto at = [&](std::size_t place) { return std::to_integer<std::uint32_t>(bytes[place]); };
        std::size_t done = 0;
        for (; done + 3 <= bytes.size(); done += 3) {
            std::uint32_t block = at(done) << 16 | at(done + 1) << 8 | at(done + 2);
            out[0] = letters[block >> 18];
            out[1] = letters[block >> 12 & 63];
            out[2] = letters[block >> 6 & 63];
            out[3] = letters[block & 63];
            out += 4;
        }
        if (std::size_t left = bytes.size() - done; left > 0) {
            std::uint32_t block = at(done) << 16 | (left > 1 ? at(done + 1) << 8 : 0);
            *out++ = letters[block >> 18];
            *out++ = letters[block >> 12 & 63];
            if (left > 1) *out = letters[block >> 6 & 63];
        }
        text.back() = '"';
        return Json(Raw{}, std::move(text));
    }

    /// Adds a member to an object.
    Json &set(std::string_view name, const Json &value) {
        if (&value == this) return set(name, Json(value));
        if (text_.size() < 2 || text_.front() != '{') text_ = "{}";
        begin();
        quote(name, text_);
        text_ += ':';
        text_ += value.text_;
        text_ += '}';
        return *this;
    }

    /// Adds an element to an array.
    Json &push(const Json &value) {
        if (&value == this) return push(Json(value));
        if (text_.size() < 2 || text_.front() != '[') text_ = "[]";
        begin();
        text_ += value.text_;
        text_ += ']';
        return *this;
    }

    const std::string &text() const { return text_; }

private:
    struct Raw {};
    Json(Raw, std::string text) : text_(std::move(text)) {}

    /// Opens a map or a list for another element.
    void begin() {
        text_.pop_back();
        if (text_.size() > 1) text_ += ',';
    }

    static void quote(std::string_view value, std::string &out) {
        static constexpr char hex[] = "0123456789abcdef";
        out += '"';
        for (char letter : value) {
            auto code = static_cast<unsigned char>(letter);
            if (letter == '"' || letter == '\\') {
                out += '\\';
                out += letter;
            } else if (code < 0x20) {
                out += "\\u00";
                out += hex[code >> 4];
                out += hex[code & 15];
            } else {
                out += letter;
            }
        }
        out += '"';
    }

    std::string text_;
};

} // namespace playfield
