// Joins that a node redirects to another. The node that does redirects all joins to the node that
// has the rooms; that of the room "gone" to one that is not there.

#include <filesystem>

#include "support.hpp"

using namespace playfield;

static std::size_t descriptors() {
    std::size_t count = 0;
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        (void)entry;
        ++count;
    }
    return count;
}

static Client open(const test::Node &node, std::chrono::milliseconds node_idle) {
    Options options;
    options.url = node.redirecting();
    options.node_idle = node_idle;
    return VALUE(Client::open(options));
}

constexpr auto hour = std::chrono::hours(1);

/// Without a reservation the same request is sent to the other node; with one, that.
static void rooms_are_entered_where_they_are(const test::Node &node) {
    auto client = open(node, hour), direct = test::open(node.tcp());
    auto room = VALUE(client.join_or_create("hello", "a key").wait());
    CHECK_EQUAL(room.node(), node.tcp());
    auto same = VALUE(direct.join_by_key("hello", "a key").wait());
    CHECK_EQUAL(same.node(), "");
    CHECK_EQUAL(same.id(), room.id());
    std::string said;
    room.on_event("Said", [&](Value value) { said = value["text"].text(); });
    VALUE(same.send("Say", Json::object({{"text", "hi"}})));
    VALUE(direct.ping().wait());
    UNTIL(client, said == "hi");
    CHECK_EQUAL(VALUE(room.request("Add", 7).wait()).as<int>(), 7);
    UNTIL(client, room.state()["count"].as<int>() == 7);
    // Another room there takes no other connection.
    std::size_t before = descriptors();
    auto by_id = VALUE(direct.create_room("hello").wait());
    auto reserved = VALUE(client.join(by_id.id()).wait());
    CHECK_EQUAL(reserved.id(), by_id.id());
    CHECK_EQUAL(descriptors(), before);
    // The refusal of the other node is the answer.
    CHECK_EQUAL(client.join_by_key("hello", "no key").wait().error().reason, "room_not_found");
    VALUE(room.leave().wait());
    CHECK_EQUAL(VALUE(reserved.request("Add", 1).wait()).as<int>(), 1);
}

static void a_node_that_is_gone_is_unreachable(const test::Node &node) {
    auto client = open(node, hour);
    auto error = client.join("gone").wait().error();
    CHECK_EQUAL(error.code, PF_CODE_UNREACHABLE);
    CHECK_EQUAL(error.reason, "unreachable");
    CHECK(error.message.find("tcp://127.0.0.1:1") != std::string::npos);
    VALUE(client.ping().wait());
}

static void connections_that_are_not_used_are_closed(const test::Node &node) {
    // The connections of earlier clients end.
    VALUE(shut_down());
    auto client = open(node, std::chrono::milliseconds(0));
    std::size_t before = descriptors();
    for (int i = 0; i < 3; ++i) {
        auto room = VALUE(client.create_room("hello").wait());
        CHECK(descriptors() > before);
        room = Room();
        UNTIL(client, descriptors() <= before);
    }
    VALUE(client.ping().wait());
}

static void all_connections_end_together(const test::Node &node) {
    auto said = Json::object({{"text", "x"}});
    for (bool closes : {true, false}) {
        auto client = open(node, hour);
        auto room = VALUE(client.create_room("hello").wait());
        int left = 0, ended = 0;
        room.on_left([&](const Error &) {
            CHECK_EQUAL(ended, 0);
            ++left;
        });
        client.on_ended([&](const Error &) { ++ended; });
        client.on_new_session([](std::uint64_t) { CHECK(false); });
        if (closes) {
            VALUE(client.close().wait());
            CHECK_EQUAL(left, 1);
            CHECK_EQUAL(ended, 1);
            CHECK_EQUAL(room.send("Say", said).error().code, PF_CODE_CLOSED);
        } else {
            client.free();
            CHECK_EQUAL(room.send("Say", said).error().code, PF_CODE_FREED);
        }
    }
    VALUE(shut_down());
}

/// Joins that are under way when the client is freed or closed.
static void clients_end_while_they_join(const test::Node &node) {
    for (int turns = 0; turns < 40; ++turns) {
        auto client = open(node, hour);
        auto joining = client.create_room("hello");
        for (int i = 0; i < turns / 4; ++i) VALUE(client.poll());
        if (turns % 2 == 0) {
            VALUE(client.close().wait());
            // Either it was in time, or it has failed.
            (void)std::move(joining).wait();
        } else {
            client.free();
        }
    }
}

int main() {
    test::Node node;
    rooms_are_entered_where_they_are(node);
    a_node_that_is_gone_is_unreachable(node);
    connections_that_are_not_used_are_closed(node);
    clients_end_while_they_join(node);
    all_connections_end_together(node);
}
