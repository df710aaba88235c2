// Messages as the bytes of the format `packed`: no JSON, no base64 and no tree.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "result.hpp"

namespace playfield {

/// Writes a value in `packed` (docs/state.md): of a struct its fields, in the order of the room's
/// schema. Each function is named for the schema's type. The bytes have no types: what can't be read as
/// the schema says is refused when the message is sent, with the byte at which it does not fit; what
/// can be read has another value, as `u64(5)` for an `i64` is -3.
///
///     // struct Turn { card: u16, targets: List<PlayerId>, note: Option<String> }
///     PackedWriter turn;
///     turn.u16(7).count(2).player(ann).player(bob).option(true).text("now");
class PackedWriter {
public:
    PackedWriter &boolean(bool value) { return byte(value ? 1 : 0); }
    PackedWriter &u8(std::uint8_t value) { return byte(value); }
    PackedWriter &u16(std::uint16_t value) { return varint(value); }
    PackedWriter &u32(std::uint32_t value) { return varint(value); }
    PackedWriter &u64(std::uint64_t value) { return varint(value); }
    PackedWriter &i8(std::int8_t value) { return byte(static_cast<std::uint8_t>(value)); }
    PackedWriter &i16(std::int16_t value) { return zigzag(value); }
    PackedWriter &i32(std::int32_t value) { return zigzag(value); }
    PackedWriter &i64(std::int64_t value) { return zigzag(value); }
    PackedWriter &f32(float value) { return fixed(std::bit_cast<std::uint32_t>(value)); }
    PackedWriter &f64(double value) { return fixed(std::bit_cast<std::uint64_t>(value)); }
    PackedWriter &text(std::string_view value) {
        return bytes(std::as_bytes(std::span(value.data(), value.size())));
    }
    PackedWriter &bytes(std::span<const std::byte> value) {
        varint(value.size());
        if (!value.empty()) bytes_.insert(bytes_.end(), value.begin(), value.end());
        return *this;
    }
    PackedWriter &player(std::uint64_t value) { return varint(value); }
    /// Reads whether the value of an option follows.
    PackedWriter &option(bool follows) { return boolean(follows); }
    /// How many elements of a list follow, or entries of a map, each its key and then its value.
    PackedWriter &count(std::size_t value) { return varint(value); }
    /// The position of an enum's variant in the schema, from 0. Its fields follow.
    PackedWriter &variant(std::uint64_t position) { return varint(position); }
    /// A message or a struct without fields.
    PackedWriter &unit() { return byte(0); }

    /// Starts over, and keeps the memory.
    PackedWriter &clear() {
        bytes_.clear();
        return *this;
    }
    std::span<const std::byte> written() const { return bytes_; }

private:
    PackedWriter &byte(std::uint8_t value) {
        bytes_.push_back(std::byte(value));
        return *this;
    }
    PackedWriter &varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) byte(static_cast<std::uint8_t>(value | 0x80));
        return byte(static_cast<std::uint8_t>(value));
    }
    PackedWriter &zigzag(std::int64_t value) {
        auto bits = static_cast<std::uint64_t>(value);
        return varint(bits << 1 ^ (value < 0 ? ~std::uint64_t(0) : 0));
    }
    template <class Bits> PackedWriter &fixed(Bits bits) {
        for (std::size_t at = 0; at < sizeof bits; ++at) {
            byte(static_cast<std::uint8_t>(bits >> (8 * at)));
        }
        return *this;
    }

    std::vector<std::byte> bytes_;
};

/// Reads a value in `packed`, in place: texts and bytes point into what is read.
///
/// It is checked. After the first read that fails, all give 0 or nothing; `finish()` says what was
/// wrong, and at which byte. The library has checked payloads by the room's schema before it hands
/// them over; a program that reads another type gets an error or another value.
class PackedReader {
public:
    PackedReader() = default;
    explicit PackedReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    bool boolean() {
        auto value = byte("a bool");
        if (value > 1) fail("a bool is 0 or 1, not " + std::to_string(value), at_ - 1);
        return value == 1;
    }
    std::uint8_t u8() { return byte("a u8"); }
    std::uint16_t u16() { return narrow<std::uint16_t>(&PackedReader::varint); }
    std::uint32_t u32() { return narrow<std::uint32_t>(&PackedReader::varint); }
    std::uint64_t u64() { return varint(); }
    std::int8_t i8() { return static_cast<std::int8_t>(byte("an i8")); }
    std::int16_t i16() { return narrow<std::int16_t>(&PackedReader::zigzag); }
    std::int32_t i32() { return narrow<std::int32_t>(&PackedReader::zigzag); }
    std::int64_t i64() { return zigzag(); }
    float f32() { return std::bit_cast<float>(fixed<std::uint32_t>("an f32")); }
    double f64() { return std::bit_cast<double>(fixed<std::uint64_t>("an f64")); }
    std::string_view text() {
        auto found = bytes();
        return {reinterpret_cast<const char *>(found.data()), found.size()};
    }
    std::span<const std::byte> bytes() {
        auto length = count();
        auto found = bytes_.subspan(at_, length);
        at_ += length;
        return found;
    }
    std::uint64_t player() { return varint(); }
    /// Reads whether the value of an option follows.
    bool option() { return boolean(); }
    /// How many elements of a list, or entries of a map, follow. Never more than bytes are left.
    std::size_t count() {
        auto begin = at_;
        auto value = varint();
        if (value <= left()) return static_cast<std::size_t>(value);
        fail(std::to_string(value) + " were announced, " + std::to_string(left()) + " bytes remain",
             begin);
        return 0;
    }
    /// The position of an enum's variant in the schema, from 0. Its fields follow.
    std::uint64_t variant() { return varint(); }
    void unit() {
        if (byte("a unit") != 0) fail("a unit is a byte 0", at_ - 1);
    }

    /// How many bytes are left; 0 after an error.
    std::size_t left() const { return bytes_.size() - at_; }
    bool ok() const { return error_.empty(); }
    /// Whether all was read, and nothing else: else the error of the first read that failed.
    Result<void> finish() {
        if (ok() && left() > 0) fail("the end was expected, " + std::to_string(left()) + " bytes remain", at_);
        if (ok()) return {};
        return Error{PF_CODE_TYPE, error_};
    }

private:
    std::uint8_t byte(const char *what) {
        if (left() == 0) {
            fail(std::string(what) + " was expected, 0 bytes remain", at_);
            return 0;
        }
        return std::to_integer<std::uint8_t>(bytes_[at_++]);
    }
    std::uint64_t varint() {
        auto begin = at_;
        std::uint64_t value = 0;
        for (unsigned shift = 0; at_ < bytes_.size(); shift += 7) {
            auto next = std::to_integer<std::uint64_t>(bytes_[at_++]);
            if (shift == 63 && next > 1) return fail("a varint is past 64 bits", begin);
            value |= (next & 0x7f) << shift;
            if (next < 0x80) {
                if (next == 0 && shift > 0) return fail("a varint is not in its shortest form", begin);
                return value;
            }
        }
        return fail("a varint was expected, and the bytes end", begin);
    }
    std::int64_t zigzag() {
        auto value = varint();
        return static_cast<std::int64_t>(value >> 1 ^ (value & 1 ? ~std::uint64_t(0) : 0));
    }
    template <class Bits> Bits fixed(const char *what) {
        if (left() < sizeof(Bits)) {
            fail(std::string(what) + " was expected, " + std::to_string(left()) + " bytes remain",
                 at_);
            return 0;
        }
        Bits bits = 0;
        for (std::size_t at = 0; at < sizeof bits; ++at) {
            bits |= static_cast<Bits>(std::to_integer<Bits>(bytes_[at_++]) << (8 * at));
        }
        return bits;
    }
    template <class T, class Wide> T narrow(Wide (PackedReader::*read)()) {
        auto begin = at_;
        auto value = (this->*read)();
        if (std::in_range<T>(value)) return static_cast<T>(value);
        return static_cast<T>(
            fail(std::to_string(value) + " does not fit " + std::to_string(8 * sizeof(T)) +
                     (std::is_signed_v<T> ? " bits with a sign" : " bits"),
                 begin));
    }
    /// Keeps the first error, and reads nothing more.
    std::uint64_t fail(std::string what, std::size_t at) {
        if (ok()) error_ = "at byte " + std::to_string(at) + ": " + std::move(what);
        at_ = bytes_.size();
        return 0;
    }

    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
    std::string error_;
};

} // namespace playfield
