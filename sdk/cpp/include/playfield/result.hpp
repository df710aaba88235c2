// Results: a value, or why there is none. Exceptions are optional.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <playfield.h>

// Without exceptions, Result::value() of an error prints it and aborts.
#if !defined(PLAYFIELD_EXCEPTIONS)
#if defined(__cpp_exceptions)
#define PLAYFIELD_EXCEPTIONS 1
#else
#define PLAYFIELD_EXCEPTIONS 0
#endif
#endif

namespace playfield {

using Code = pf_code;

/// Why something failed.
struct Error {
    // Not an aggregate: in a coroutine, GCC 12 copies braced temporaries of aggregates wrongly.
    Error() {}
    Error(Code failed, std::string what, std::string name = {}, std::string words = {},
          std::chrono::milliseconds wait = {})
        : code(failed), message(std::move(what)), reason(std::move(name)), said(std::move(words)),
          retry_after(wait) {}

    Code code = PF_CODE_FAILED;
    /// For people: what was wrong, with which value, and what to do.
    std::string message;
    /// The protocol's name of the error, such as `room_full`; empty if it is none of a node.
    std::string reason;
    /// What the node or the room said itself, which is part of the message.
    std::string said;
    /// How long to wait before asking again; zero if unknown.
    std::chrono::milliseconds retry_after{0};

    /// Whether the node or the room refused.
    bool is_refused() const { return code == PF_CODE_REFUSED; }
    /// Whether the connection, or the client, has ended.
    bool is_closed() const { return code == PF_CODE_CLOSED || code == PF_CODE_FREED; }
    /// Whether it is unknown if it was done, because the answer was lost with the connection.
    bool is_lost() const { return code == PF_CODE_LOST; }
};

#if PLAYFIELD_EXCEPTIONS
/// What Result::value() throws.
class Exception : public std::runtime_error {
public:
    explicit Exception(Error error) : std::runtime_error(error.message), error_(std::move(error)) {}
    const Error &error() const noexcept { return error_; }

private:
    Error error_;
};
#endif

namespace detail {

inline std::string_view view(pf_text text) {
    return {reinterpret_cast<const char *>(text.data), text.length};
}

inline pf_text text(std::string_view view) {
    pf_text found;
    found.data = reinterpret_cast<const uint8_t *>(view.data());
    found.length = view.size();
    return found;
}

inline pf_text text(std::span<const std::byte> bytes) {
    return text({reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

/// The error of the call that has just failed on this thread.
inline Error last_error(pf_code code) {
    return Error{code, std::string(view(pf_error_message()))};
}

/// What a success has in the place of an error.
inline const Error &no_error() {
    static const auto *none = new Error{PF_CODE_OK, "it has not failed"};
    return *none;
}

[[noreturn]] inline void raise(const Error &error) {
#if PLAYFIELD_EXCEPTIONS
    throw Exception(error);
#else
    std::fprintf(stderr, "playfield: a result without a value was used: %s\n", error.message.c_str());
    std::abort();
#endif
}

} // namespace detail

/// A value, or an error.
template <class T> class [[nodiscard]] Result {
public:
    Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : held_(std::in_place_index<1>, std::move(error)) {}

    bool ok() const { return held_.index() == 0; }
    explicit operator bool() const { return ok(); }

    /// The value. Throws `Exception` if there is none, or aborts where exceptions are disabled.
    T &value() & {
        require();
        return std::get<0>(held_);
    }
    const T &value() const & {
        require();
        return std::get<0>(held_);
    }
    T value() && {
        require();
        return std::move(std::get<0>(held_));
    }
    T value_or(T other) && { return ok() ? std::move(std::get<0>(held_)) : std::move(other); }
    T &operator*() { return value(); }
    const T &operator*() const { return value(); }
    T *operator->() { return &value(); }
    const T *operator->() const { return &value(); }

    /// The error; one with `PF_CODE_OK` if there is a value.
    const Error &error() const & { return ok() ? detail::no_error() : *std::get_if<1>(&held_); }
    Error error() && { return ok() ? detail::no_error() : std::move(*std::get_if<1>(&held_)); }

private:
    void require() const {
        if (!ok()) detail::raise(error());
    }
    std::variant<T, Error> held_;
};

/// Success, or an error.
template <> class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Error error) : error_(std::move(error)) {}

    bool ok() const { return !error_; }
    explicit operator bool() const { return ok(); }
    /// Throws `Exception` after an error, or aborts where exceptions are disabled.
    void value() const {
        if (error_) detail::raise(*error_);
    }
    /// The error; one with `PF_CODE_OK` if there is none.
    const Error &error() const & { return error_ ? *error_ : detail::no_error(); }
    Error error() && { return error_ ? *std::move(error_) : detail::no_error(); }

private:
    std::optional<Error> error_;
};

namespace detail {

inline Result<void> check(pf_code code) {
    if (code == PF_CODE_OK) return {};
    return last_error(code);
}

} // namespace detail

} // namespace playfield
