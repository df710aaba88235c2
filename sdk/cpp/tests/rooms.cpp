// Connections, rooms and channels of a real node, over all transports.

#include "support.hpp"

using namespace playfield;

static void a_game_is_played(const std::string &url, const std::string &certificate = {}) {
    Options options;
    options.url = url;
    options.name = "Ann";
    if (!certificate.empty()) options.root_certificates = {certificate};
    options.deflate = url.starts_with("ws");
    auto ann = VALUE(Client::open(options));
    options.name = "Bob";
    auto bob = VALUE(Client::open(options));

    Creation creation;
    creation.code = true;
    creation.options = Json::object({{"greeting", "hi"}});
    auto room = VALUE(ann.create_room("hello", creation).wait());
    CHECK(!room.key().empty() && !room.id().empty());
    CHECK_EQUAL(room.type(), "hello");
    CHECK_EQUAL(room.state()["greeting"].text(), "hi");
    CHECK_EQUAL(room.state()["players"][room.player()]["name"].text(), "Ann");

    std::vector<std::string> changes;
    auto watch = VALUE(room.on_change("players.*.*", [&](const Change &change) {
        changes.push_back(std::string(change.path) + ' ' + change.before.json() + ' ' +
                          change.after.json());
    }));
    std::vector<std::string> entered;
    (void)VALUE(room.on_change("players.*", [&](const Change &change) {
        if (change.kind == PF_CHANGE_KIND_ENTERED) entered.push_back(change.after["name"].text());
        if (change.kind == PF_CHANGE_KIND_LEFT) entered.push_back("not " + change.before["name"].text());
    }));
    auto other = VALUE(bob.join_by_key("hello", room.key()).wait());
    UNTIL(ann, entered.size() == 1);
    CHECK_EQUAL(entered[0], "Bob");

    std::vector<std::string> said;
    other.on_event("Said", [&](Value value) { said.push_back(value["text"].text()); });
    std::uint64_t last = 0;
    other.on_event([&](const RoomEvent &event) {
        CHECK_EQUAL(event.name, "Said");
        CHECK(event.sequence > last && !event.error);
        last = event.sequence;
        // What was synced before an event is seen before it.
        CHECK(other.state()["players"][room.player()]["said"].as<int>() >= 0);
    });
    VALUE(room.send("Say", Json::object({{"text", "one"}})));
    VALUE(room.send("Say", Json::object({{"text", "two"}})));
    UNTIL(bob, said.size() == 2);
    CHECK_EQUAL(said[0] + said[1], "onetwo");
    auto path = "players." + std::to_string(room.player()) + ".said";
    UNTIL(ann, !changes.empty() && changes.back().ends_with(" 2"));
    CHECK(changes.back().starts_with(path));
    VALUE(room.unwatch(watch));
    CHECK_EQUAL(room.unwatch(watch).error().code, PF_CODE_NOT_FOUND);

    auto reply = VALUE(room.request("Add", 41).wait());
    CHECK_EQUAL(VALUE(reply.get<int>()), 41);
    auto refused = room.request("Add", INT64_MAX).wait();
    CHECK(!refused && refused.error().is_refused());
    CHECK_EQUAL(refused.error().said, "the count would overflow");
    UNTIL(bob, other.state()["count"].as<int>() == 41);

    std::vector<Error> errors;
    room.on_refused([&](const Error &error) { errors.push_back(error); });
    VALUE(room.send("Say", Json::object({{"text", ""}})));
    UNTIL(ann, !errors.empty());
    CHECK_EQUAL(errors[0].said, "say something");
    // In packed the client knows the messages; otherwise the node answers.
    CHECK(!room.request("Nonsense").wait());

    auto rooms = VALUE(bob.list("hello").wait());
    CHECK(rooms.is_list());
    auto schema = VALUE(bob.schema("hello").wait());
    CHECK(schema.is_map());
    CHECK(VALUE(ann.ping().wait()).count() > 0);

    VALUE(other.leave().wait());
    UNTIL(ann, entered.size() == 2);
    CHECK_EQUAL(entered[1], "not Bob");
    UNTIL(bob, other.ending().has_value());
    auto late = other.request("Add", 1).wait();
    CHECK_EQUAL(late.error().code, PF_CODE_LEFT);

    auto statistics = ann.statistics();
    CHECK(statistics.is_connected && statistics.round_trip_us > 0 && statistics.rooms == 1);
    CHECK(statistics.sends == 3 && statistics.requests == statistics.answers);

    bool is_over = false;
    ann.on_ended([&](const Error &error) { is_over = error.is_closed(); });
    VALUE(ann.close().wait());
    CHECK(is_over);
    CHECK_EQUAL(room.request("Add", 1).wait().error().code, PF_CODE_CLOSED);
    VALUE(bob.close().wait());
}

static void coroutines_go_on_in_poll(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto sum = [](Client &by) -> Future<std::int64_t> {
        Room room = (co_await by.create_room("hello")).value();
        std::int64_t last = 0;
        for (int i = 1; i <= 10; ++i) last = (co_await room.request("Add", i)).value().as<int>();
        auto refused = co_await room.request("Add", INT64_MAX);
        CHECK(!refused);
        (co_await room.leave()).value();
        co_return last;
    };
    auto both = [&sum](Client &by) -> Future<std::int64_t> {
        auto one = sum(by);
        auto other = sum(by);
        co_return (co_await std::move(one)).value() + (co_await std::move(other)).value();
    };
    CHECK_EQUAL(VALUE(both(client).wait()), 110);

    auto throws = [](Client &by) -> Future<int> {
        co_return (co_await by.join("no such room")).value().player() > 0;
    };
    auto failed = throws(client).wait();
    CHECK(!failed && failed.error().is_refused());
    CHECK(!failed.error().reason.empty());

    int called = 0;
    client.create_room("hello").then([&](Result<Room> room) {
        room->request("Add", 5).then([](Result<Document>) {});
        ++called;
    });
    UNTIL(client, called == 1);
}

static void channels_carry_publications(const test::Node &node) {
    auto ann = test::open(node.tcp());
    auto bob = test::open(node.ws(), "Bob");
    auto channel = VALUE(ann.subscribe("chat:lobby", true).wait());
    bool subscribed = false;
    std::vector<std::string> seen;
    channel.on_subscribed([&](bool, std::uint64_t) { subscribed = true; });
    channel.on_presence([&](std::string_view name, bool joined) {
        seen.push_back(std::string(name) + (joined ? " came" : " went"));
    });
    channel.on_publication([&](const Publication &publication) {
        seen.push_back(publication.value["text"].text());
    });
    UNTIL(ann, subscribed);
    {
        auto other = VALUE(bob.subscribe("chat:lobby").wait());
        UNTIL(ann, seen.size() == 1);
        auto offset = VALUE(bob.publish("chat:lobby", Json::object({{"text", "hi"}})).wait());
        CHECK_EQUAL(offset, 1u);
        UNTIL(ann, seen.size() == 2);
        auto members = VALUE(ann.members("chat:lobby").wait());
        CHECK_EQUAL(members["count"].as<int>(), 2);
    }
    UNTIL(ann, seen.size() == 3);
    CHECK_EQUAL(seen[0] + ", " + seen[1] + ", " + seen[2], "Bob came, hi, Bob went");
    CHECK_EQUAL(channel.position().offset, 1u);
    auto history = VALUE(bob.history("chat:lobby").wait());
    CHECK_EQUAL(history["publications.0.payload.text"].text(), "hi");
    CHECK(!bob.subscribe("nonsense").wait());

    // A client that comes later goes on from the position.
    auto since = channel.position();
    (void)VALUE(bob.publish("chat:lobby", Json::object({{"text", "two"}})).wait());
    auto later = VALUE(bob.subscribe("chat:lobby", false, since).wait());
    std::string text;
    later.on_publication([&](const Publication &publication) { text = publication.value["text"].text(); });
    UNTIL(bob, text == "two");
}

static void tokens_and_certificates_are_checked(const test::Node &node) {
    Options options;
    options.url = node.tcp();
    options.token = "wrong";
    auto refused = Client::open(options);
    CHECK(!refused && refused.error().is_refused());
    CHECK_EQUAL(refused.error().reason, "unauthorized");
    CHECK_EQUAL(refused.error().said, "the token is wrong");

    options.token = "";
    int asked = 0;
    options.token_by = [&]() -> std::optional<std::string> {
        ++asked;
        return "right";
    };
    CHECK(Client::open(options));
    CHECK_EQUAL(asked, 1);

    options.token_by = []() -> std::optional<std::string> { return std::nullopt; };
    options.timeout = std::chrono::milliseconds(50);
    auto without = Client::open(options);
    CHECK_EQUAL(without.error().code, PF_CODE_NO_TOKEN);

    options = {};
    options.url = node.localhost("tls");
    auto untrusted = Client::open(options);
    CHECK(!untrusted);
    CHECK(untrusted.error().code == PF_CODE_UNTRUSTED || untrusted.error().code == PF_CODE_FAILED);
    options.url = "tcp://127.0.0.1:1";
    CHECK_EQUAL(Client::open(options).error().code, PF_CODE_UNREACHABLE);
    options.url = "nonsense";
    CHECK_EQUAL(Client::open(options).error().code, PF_CODE_ARGUMENT);
}

static void events_wait_in_the_room_until_they_are_taken(const test::Node &node) {
    auto client = test::open(node.tcp()), other = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    auto seen = VALUE(other.join(room.id()).wait());
    int said = 0, heard = 0;
    room.on_event("Said", [&](Value) { ++said; });
    seen.on_event("Said", [&](Value) { ++heard; });
    for (int i = 0; i < 500; ++i) VALUE(room.send("Say", Json::object({{"text", "x"}})));
    UNTIL(other, heard == 500);
    pf_event event{};
    std::uint64_t before = client.statistics().events;
    CHECK_EQUAL(pf_client_next(client.raw(), 60'000, &event), PF_CODE_OK);
    // If all that come were taken at once, this might not end while more come.
    CHECK(client.statistics().events - before <= 64);
    CHECK_EQUAL(said, 0);
    while (event.kind != PF_EVENT_KIND_EVENT) {
        CHECK_EQUAL(pf_client_next(client.raw(), 60'000, &event), PF_CODE_OK);
    }
    UNTIL(client, said == 499);
}

static void what_is_held_back_goes_before_the_client_waits(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    for (int i = 0; i < 100; ++i) {
        CHECK_EQUAL(pf_client_cork(client.raw(), true), PF_CODE_OK);
        auto reply = room.request("Add", 1);
        if (i % 2 == 0) CHECK_EQUAL(pf_client_cork(client.raw(), false), PF_CODE_OK);
        CHECK_EQUAL(VALUE(std::move(reply).wait()).as<int>(), i + 1);
    }
    // More than the queue has place for, and all is sent before the goodbye.
    CHECK_EQUAL(pf_client_cork(client.raw(), true), PF_CODE_OK);
    int said = 0, answered = 0;
    bool ended = false;
    room.on_event("Said", [&](Value) { ++said; });
    for (int i = 0; i < 3000; ++i) {
        room.request("Add", 1).then([&](Result<Document> reply) {
            answered += reply && reply->as<int>() == 101 + answered;
        });
    }
    client.on_ended([&](const Error &) { ended = true; });
    VALUE(room.send("Say", Json::object({{"text", "x"}})));
    UNTIL(client, answered == 3000 && said == 1);
    CHECK_EQUAL(pf_client_cork(client.raw(), true), PF_CODE_OK);
    VALUE(room.send("Say", Json::object({{"text", "y"}})));
    client.close().detach();
    UNTIL(client, ended);
    CHECK_EQUAL(said, 2);
}

int main() {
    test::Node node;
    auto certificate = test::file(node.certificate_file);
    a_game_is_played(node.tcp());
    a_game_is_played(node.ws());
    a_game_is_played(node.localhost("tls"), certificate);
    a_game_is_played(node.localhost("wss"), certificate);
    coroutines_go_on_in_poll(node);
    channels_carry_publications(node);
    tokens_and_certificates_are_checked(node);
    events_wait_in_the_room_until_they_are_taken(node);
    what_is_held_back_goes_before_the_client_waits(node);
    VALUE(shut_down());
}
