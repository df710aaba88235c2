// Messages in packed: what is written is read back, and what does not fit is refused with the byte.

#include <cmath>
#include <limits>

#include "support.hpp"

using namespace playfield;

namespace {

PackedReader reader(const PackedWriter &written) { return PackedReader(written.written()); }

template <std::size_t N> std::vector<std::byte> bytes(const std::uint8_t (&of)[N]) {
    auto all = std::as_bytes(std::span(of));
    return {all.begin(), all.end()};
}

void values_are_read_back() {
    const std::uint8_t blob[] = {0, 255, 7};
    PackedWriter written;
    written.boolean(true).u8(255).u16(65535).u32(4294967295).u64(UINT64_MAX);
    written.i8(-128).i16(INT16_MIN).i32(INT32_MIN).i64(INT64_MIN).i64(INT64_MAX).i64(-1);
    written.f32(0.1f).f64(-INFINITY).text("é").bytes(std::as_bytes(std::span(blob)));
    written.player(7).option(false).option(true).count(2).variant(300).unit();
    auto read = reader(written);
    CHECK(read.boolean());
    CHECK_EQUAL(read.u8(), 255);
    CHECK_EQUAL(read.u16(), 65535);
    CHECK_EQUAL(read.u32(), 4294967295u);
    CHECK_EQUAL(read.u64(), UINT64_MAX);
    CHECK_EQUAL(read.i8(), -128);
    CHECK_EQUAL(read.i16(), INT16_MIN);
    CHECK_EQUAL(read.i32(), INT32_MIN);
    CHECK_EQUAL(read.i64(), INT64_MIN);
    CHECK_EQUAL(read.i64(), INT64_MAX);
    CHECK_EQUAL(read.i64(), -1);
    CHECK_EQUAL(read.f32(), 0.1f);
    CHECK(std::isinf(read.f64()));
    CHECK_EQUAL(read.text(), "é");
    auto found = read.bytes();
    CHECK(std::vector(found.begin(), found.end()) == bytes(blob));
    CHECK_EQUAL(read.player(), 7u);
    CHECK(!read.option() && read.option());
    CHECK_EQUAL(read.count(), 2u);
    CHECK_EQUAL(read.variant(), 300u);
    read.unit();
    VALUE(read.finish());
    // In the same memory.
    VALUE([&] {
        auto again = reader(written.clear().u8(3));
        CHECK_EQUAL(again.u8(), 3);
        return again.finish();
    }());
}

/// The error of reading these bytes.
template <std::size_t N, class Read> std::string why(const std::uint8_t (&of)[N], Read read) {
    PackedReader from(std::as_bytes(std::span(of)));
    read(from);
    auto finished = from.finish();
    CHECK(!finished && !from.ok());
    CHECK_EQUAL(finished.error().code, PF_CODE_TYPE);
    // Nothing more is read, and the first error stays.
    CHECK_EQUAL(from.u64() + from.count() + from.u8() + from.left(), 0u);
    CHECK_EQUAL(from.finish().error().message, finished.error().message);
    return finished.error().message;
}

void bytes_that_do_not_fit_are_refused() {
    auto u64 = [](PackedReader &from) { (void)from.u64(); };
    CHECK_EQUAL(why({0x80}, u64), "at byte 0: a varint was expected, and the bytes end");
    CHECK_EQUAL(why({0x80, 0}, u64), "at byte 0: a varint is not in its shortest form");
    CHECK_EQUAL(why({255, 255, 255, 255, 255, 255, 255, 255, 255, 2}, u64),
                "at byte 0: a varint is past 64 bits");
    CHECK_EQUAL(why({1, 2}, u64), "at byte 1: the end was expected, 1 bytes remain");
    CHECK_EQUAL(why({0x80, 0x80, 4}, [](auto &from) { (void)from.u16(); }),
                "at byte 0: 65536 does not fit 16 bits");
    CHECK_EQUAL(why({9, 0x80, 0x80, 4}, [](auto &from) { (void)from.u8(), (void)from.i16(); }),
                "at byte 1: 32768 does not fit 16 bits with a sign");
    CHECK_EQUAL(why({2}, [](auto &from) { (void)from.boolean(); }),
                "at byte 0: a bool is 0 or 1, not 2");
    CHECK_EQUAL(why({1}, [](auto &from) { from.unit(); }), "at byte 0: a unit is a byte 0");
    CHECK_EQUAL(why({1, 2, 3}, [](auto &from) { (void)from.f32(); }),
                "at byte 0: an f32 was expected, 3 bytes remain");
    CHECK_EQUAL(why({9, 'x'}, [](auto &from) { (void)from.text(); }),
                "at byte 0: 9 were announced, 1 bytes remain");
    CHECK_EQUAL(why({0}, [](auto &from) { (void)from.u8(), (void)from.u8(); }),
                "at byte 1: a u8 was expected, 0 bytes remain");
}

void a_room_is_asked_and_answers(const std::string &url) {
    auto client = test::open(url);
    auto room = VALUE(client.create_room("hello").wait());
    PackedWriter message;
    auto reply = VALUE(room.request_packed("Add", message.i64(-300)).wait());
    PackedReader sum(reply);
    CHECK_EQUAL(sum.i64(), -300);
    VALUE(sum.finish());
    UNTIL(client, room.state()["count"].as<int>() == -300);

    // Many in one write, answered in order by callbacks, which ask again.
    int answered = 0;
    std::function<void(int)> add = [&](int left) {
        room.request_packed("Add", message.clear().i64(1), [&, left](Result<PackedReader> of) {
            CHECK_EQUAL(VALUE(std::move(of)).i64(), ++answered - 300);
            if (left > 0) add(left - 1);
        });
    };
    for (int i = 0; i < 100; ++i) add(3);
    UNTIL(client, answered == 400);

    // Events come in packed, then as values again.
    std::vector<std::string> said;
    int values = 0, all = 0;
    room.on_event([&](const RoomEvent &event) {
        ++all;
        CHECK_EQUAL(event.bytes.empty(), bool(event.value));
    });
    room.on_event("Said", [&](Value) { ++values; });
    VALUE(room.on_packed("Said", [&](PackedReader event) {
        CHECK_EQUAL(event.player(), room.player());
        said.emplace_back(event.text());
        VALUE(event.finish());
    }));
    VALUE(room.send_packed("Say", message.clear().text("packed")));
    VALUE(room.send("Say", Json::object({{"text", "json"}})));
    UNTIL(client, said.size() == 2);
    CHECK_EQUAL(said[0] + said[1], "packedjson");
    CHECK_EQUAL(values, 0);
    VALUE(room.on_packed("Said", nullptr));
    VALUE(room.send_packed("Say", message.clear().text("value")));
    UNTIL(client, values == 1);
    CHECK_EQUAL(said.size(), 2u);
    CHECK_EQUAL(all, 3);
    CHECK_EQUAL(room.on_packed("Sung", [](PackedReader) {}).error().code, PF_CODE_NOT_FOUND);

    // The room answers with an error.
    auto refused = room.request_packed("Add", message.clear().i64(INT64_MAX)).wait();
    CHECK(!refused && refused.error().is_refused());
    CHECK_EQUAL(refused.error().said, "the count would overflow");
}

/// Events that were taken in packed reach one function, also if `on_packed` is removed meanwhile; and
/// one that is set in a callback gets all after it.
void functions_are_replaced_in_callbacks(const std::string &url) {
    constexpr int events = 40;
    auto client = test::open(url);
    auto room = VALUE(client.create_room("hello").wait());
    int all = 0, packed = 0, values = 0;
    auto held = std::make_shared<int>();
    room.on_event([&](const RoomEvent &) { ++all; });
    room.on_event("Said", [&](Value) { ++values; });
    VALUE(room.on_packed("Said", [&, held](PackedReader event) {
        CHECK_EQUAL(event.player(), room.player());
        ++packed;
        VALUE(room.on_packed("Said", nullptr));
    }));
    PackedWriter message;
    auto say = [&] {
        for (int i = 0; i < events; ++i) VALUE(room.send_packed("Say", message.clear().text("x")));
        bool answered = false;
        room.request_packed("Add", message.clear().i64(1), [&](Result<PackedReader>) {
            answered = true;
        });
        UNTIL(client, answered && all == events);
    };
    say();
    CHECK(packed > 0);
    CHECK_EQUAL(packed + values, events);
    (void)client.poll();
    CHECK_EQUAL(held.use_count(), 1);

    all = packed = values = 0;
    room.on_event("Said", [&](Value) {
        ++values;
        VALUE(room.on_packed("Said", [&](PackedReader) { ++packed; }));
    });
    say();
    CHECK_EQUAL(values, 1);
    CHECK_EQUAL(packed, events - 1);

    // The bytes have no types.
    auto sum = VALUE(room.request_packed("Add", message.clear().u64(5)).wait());
    CHECK_EQUAL(PackedReader(sum).i64(), 2 - 3);
}

/// Wrong bytes are refused before they are sent, and leave the connection as it is.
void wrong_bytes_are_refused(const std::string &url) {
    auto client = test::open(url);
    auto room = VALUE(client.create_room("hello").wait());
    std::vector<Error> errors;
    room.on_refused([&](const Error &error) { errors.push_back(error); });
    auto send = [&](const char *name, const PackedWriter &message) {
        auto sent = room.send_packed(name, message);
        auto asked = room.request_packed(name, message).wait();
        CHECK(!sent && !asked);
        CHECK_EQUAL(sent.error().message, asked.error().message);
        // By a callback too, which is called once.
        int called = 0;
        room.request_packed(name, message, [&](Result<PackedReader> reply) {
            ++called;
            CHECK_EQUAL(reply.error().message, sent.error().message);
        });
        UNTIL(client, called == 1);
        return sent.error().message;
    };
    auto ends = [](const std::string &all, std::string_view end) {
        if (!all.ends_with(end)) test::fail(__FILE__, __LINE__, all);
    };
    PackedWriter message;
    ends(send("Sing", message), "the room has no message \"Sing\"");
    ends(send("Say", message), "at byte 0: a varint was expected, 0 bytes remain");
    ends(send("Say", message.count(5).u8('x')),
         "at byte 0: a text of 5 bytes was announced, 1 remain");
    ends(send("Say", message.clear().count(2).u8('x').u8(255)), "at byte 2: a text is not UTF-8");
    ends(send("Say", message.clear().text("x").u8(0)), "at byte 2: the end was expected, 1 bytes remain");
    CHECK(errors.empty());
    CHECK_EQUAL(VALUE(room.request("Add", 1).wait()).as<int>(), 1);
}

/// An exception, or the end of the client, in the middle of what came together.
void callbacks_may_throw_and_free(const std::string &url) {
    auto client = test::open(url);
    auto room = VALUE(client.create_room("hello").wait());
    PackedWriter message;
    int answered = 0, thrown = 0;
    for (int i = 0; i < 50; ++i) {
        room.request_packed("Add", message.clear().i64(1), [&](Result<PackedReader> reply) {
            CHECK_EQUAL(VALUE(std::move(reply)).i64(), ++answered);
            if (answered % 7 == 0) throw std::runtime_error("seven");
        });
    }
    while (answered < 50) {
        try {
            VALUE(client.poll(std::chrono::seconds(10)));
        } catch (const std::runtime_error &) {
            ++thrown;
        }
    }
    CHECK_EQUAL(thrown, 7);

    int failed = 0;
    answered = 0;
    for (int i = 0; i < 50; ++i) {
        room.request_packed("Add", message.clear().i64(1), [&](Result<PackedReader> reply) {
            if (!reply) {
                CHECK_EQUAL(reply.error().code, PF_CODE_FREED);
                ++failed;
            } else if (++answered == 10) {
                client.free();
            }
        });
    }
    while (failed == 0) (void)client.poll(std::chrono::seconds(10));
    CHECK_EQUAL(answered + failed, 50);
    CHECK_EQUAL(client.poll().error().code, PF_CODE_FREED);
    CHECK_EQUAL(room.send_packed("Add", message).error().code, PF_CODE_FREED);
}

} // namespace

int main() {
    values_are_read_back();
    bytes_that_do_not_fit_are_refused();
    test::Node node;
    a_room_is_asked_and_answers(node.tcp());
    a_room_is_asked_and_answers(node.ws());
    functions_are_replaced_in_callbacks(node.tcp());
    wrong_bytes_are_refused(node.tcp());
    callbacks_may_throw_and_free(node.tcp());
    VALUE(shut_down());
}
