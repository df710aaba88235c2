// Callbacks that end what they are called for, and what outlives what.

#include "support.hpp"

using namespace playfield;

static void callbacks_may_free_the_client(const test::Node &node) {
    for (int how = 0; how < 6; ++how) {
        auto client = test::open(node.tcp());
        auto room = VALUE(client.create_room("hello").wait());
        bool called = false;
        std::string late;
        auto end = [&](Value value) {
            // Everything that was passed is still there after the client is freed.
            client.free();
            late = value["text"].text();
            called = true;
            CHECK_EQUAL(room.send("Say").error().code, PF_CODE_FREED);
            CHECK(!client.poll());
        };
        room.on_event("Said", [&](Value value) {
            if (how == 0) end(value);
        });
        room.on_event([&](const RoomEvent &event) {
            if (how == 1) end(event.value);
        });
        room.on_state([&] {
            if (how == 2 && room.state()["log"].size() > 0) end({});
        });
        (void)VALUE(room.on_change("log.*", [&](const Change &change) {
            if (how == 3) end(change.after);
        }));
        auto request = room.request("Say", Json::object({{"text", "x"}}));
        std::move(request).then([&](Result<Document> reply) {
            if (how == 4) end(reply ? Value(*reply) : Value());
        });
        if (how == 5) {
            // The room goes first, then the client, and both within a callback.
            room.on_event("Said", [&](Value) {
                room = Room();
                client.free();
                called = true;
            });
        }
        while (!called) {
            auto polled = client.poll(std::chrono::milliseconds(100));
            CHECK(polled || called);
        }
        CHECK_EQUAL(client.poll().error().code, PF_CODE_FREED);
        if (how < 2) CHECK_EQUAL(late, "x");
        client.free();
    }
}

static void callbacks_may_close_the_client(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    bool over = false, left = false;
    client.on_ended([&](const Error &) { over = true; });
    room.on_left([&](const Error &) { left = true; });
    room.on_event("Said", [&](Value) { client.close().detach(); });
    VALUE(room.send("Say", Json::object({{"text", "x"}})));
    UNTIL(client, over && left);
    CHECK(room.ending());
    CHECK_EQUAL(room.request("Add", 1).wait().error().code, PF_CODE_CLOSED);
    CHECK_EQUAL(room.send("Say", Json::object({{"text", "x"}})).error().code, PF_CODE_CLOSED);
    CHECK_EQUAL(client.join("x").wait().error().code, PF_CODE_CLOSED);
    VALUE(client.close().wait());
    // The state is still there.
    CHECK(room.state());
}

static void callbacks_may_replace_themselves_and_drop_rooms(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    int first = 0, second = 0;
    auto padding = std::make_shared<std::string>("kept by the first callback only");
    room.on_event("Said", [&, padding](Value) {
        ++first;
        room.on_event("Said", [&](Value) { ++second; });
        CHECK_EQUAL(*padding, "kept by the first callback only");
    });
    VALUE(room.send("Say", Json::object({{"text", "x"}})));
    VALUE(room.send("Say", Json::object({{"text", "y"}})));
    UNTIL(client, second == 1);
    CHECK_EQUAL(first, 1);

    std::uint64_t watch = 0;
    int changes = 0;
    watch = VALUE(room.on_change("log.*", [&, padding](const Change &) {
        ++changes;
        VALUE(room.unwatch(watch));
        CHECK_EQUAL(*padding, "kept by the first callback only");
    }));
    VALUE(room.send("Say", Json::object({{"text", "z"}})));
    UNTIL(client, changes == 1);
    room.on_event("Said", [&](Value) { room = Room(); });
    VALUE(room.send("Say", Json::object({{"text", "z"}})));
    UNTIL(client, !room);
    // It has left the room, and may enter another.
    CHECK(client.create_room("hello").wait());
    UNTIL(client, client.statistics().rooms == 0);
}

static void polling_in_a_callback_is_an_error(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    bool called = false;
    room.on_event("Said", [&](Value value) {
        CHECK_EQUAL(client.poll().error().code, PF_CODE_USAGE);
        CHECK_EQUAL(room.request("Add", 1).wait().error().code, PF_CODE_USAGE);
        CHECK_EQUAL(value["text"].text(), "x");
        called = true;
    });
    VALUE(room.send("Say", Json::object({{"text", "x"}})));
    UNTIL(client, called);
    // An exception of a callback leaves poll(), which works again.
    room.on_event("Said", [](Value) { throw std::runtime_error("the program's own"); });
    VALUE(room.send("Say", Json::object({{"text", "x"}})));
    bool thrown = false;
    while (!thrown) {
        try {
            VALUE(client.poll(std::chrono::milliseconds(100)));
        } catch (const std::runtime_error &) {
            thrown = true;
        }
    }
    CHECK(room.request("Add", 1).wait());
}

static void rooms_and_coroutines_outlive_the_client(const test::Node &node) {
    Room room;
    Channel channel;
    std::vector<Error> errors;
    {
        auto client = test::open(node.tcp());
        room = VALUE(client.create_room("hello").wait());
        channel = VALUE(client.subscribe("chat:x").wait());
        // Their answers never come.
        auto waits = [](Client held, Room in, std::vector<Error> &heard) -> Future<void> {
            auto reply = co_await in.request("Add", 1);
            if (!reply) heard.push_back(reply.error());
            auto again = co_await held.join("x");
            if (!again) heard.push_back(again.error());
        };
        waits(client, room, errors).detach();
        waits(client, room, errors).detach();
        client.free();
    }
    CHECK_EQUAL(errors.size(), 4u);
    for (const auto &error : errors) CHECK_EQUAL(error.code, PF_CODE_FREED);
    CHECK(!room.state());
    CHECK_EQUAL(room.version(), 0u);
    CHECK_EQUAL(room.send("Say").error().code, PF_CODE_FREED);
    CHECK_EQUAL(channel.position().offset, 0u);

    // A future that nobody takes, of a client that nobody holds any more.
    auto forgotten = [&]() -> Future<Document> {
        auto client = test::open(node.tcp());
        auto other = VALUE(client.create_room("hello").wait());
        return other.request("Add", 1);
    }();
    auto result = std::move(forgotten).wait();
    CHECK(!result);
}

static void states_and_events_go_stale(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    auto before = room.state();
    auto count = before["count"];
    CHECK_EQUAL(count.as<int>(-1), 0);
    Value escaped;
    room.on_event("Said", [&](Value value) { escaped = value["text"]; });
    VALUE(room.send("Say", Json::object({{"text", "x"}})));
    UNTIL(client, escaped.raw().tree != 0 && room.state()["log"].size() == 1);
    (void)VALUE(client.poll());
    CHECK_EQUAL(count.get<int>().error().code, PF_CODE_STALE);
    CHECK_EQUAL(escaped.get<std::string>().error().code, PF_CODE_STALE);
    CHECK(!before && room.state());
}

static void connecting_can_be_given_up(const test::Node &node) {
    Options options;
    options.url = node.tcp();
    auto client = VALUE(Client::create(options));
    CHECK_EQUAL(client.join("x").wait().error().code, PF_CODE_USAGE);
    auto connected = client.connect();
    CHECK_EQUAL(client.connect().wait().error().code, PF_CODE_USAGE);
    auto closed = client.close();
    CHECK(!std::move(connected).wait());
    VALUE(std::move(closed).wait());

    for (int i = 0; i < 50; ++i) {
        auto another = VALUE(Client::create(options));
        auto connecting = another.connect();
        if (i % 2 == 0) another.free();
    }
    auto never = VALUE(Client::create(options));
    VALUE(never.close().wait());
}

int main() {
    test::Node node;
    callbacks_may_free_the_client(node);
    callbacks_may_close_the_client(node);
    callbacks_may_replace_themselves_and_drop_rooms(node);
    polling_in_a_callback_is_an_error(node);
    rooms_and_coroutines_outlive_the_client(node);
    states_and_events_go_stale(node);
    connecting_can_be_given_up(node);
    VALUE(shut_down());
}
