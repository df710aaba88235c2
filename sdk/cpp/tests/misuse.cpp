// What a program may do wrong: it gets an error, and nothing is touched that is gone.

#include <thread>

#include "support.hpp"

using namespace playfield;

static void what_refers_to_nothing_fails() {
    auto nothing = [](Client client, Room room, Channel channel, Device device) {
        CHECK(!client && !room && !channel && !device);
        client.free();
        client.wake();
        client.on_lost([](const Error &) {});
        CHECK_EQUAL(client.poll().error().code, PF_CODE_HANDLE);
        CHECK_EQUAL(client.connect().wait().error().code, PF_CODE_HANDLE);
        CHECK_EQUAL(client.close().wait().error().code, PF_CODE_HANDLE);
        CHECK_EQUAL(client.join("x").wait().error().code, PF_CODE_HANDLE);
        CHECK_EQUAL(client.subscribe("x").wait().error().code, PF_CODE_HANDLE);
        CHECK_EQUAL(client.publish_unconfirmed("x", 1).error().code, PF_CODE_HANDLE);
        CHECK_EQUAL(client.register_device(Registration("x")).wait().error().code, PF_CODE_HANDLE);
        CHECK_EQUAL(client.suspect().error().code, PF_CODE_HANDLE);
        CHECK_EQUAL(client.statistics().requests, 0u);
        room.on_event("x", [](Value) {});
        room.on_state([] {});
        CHECK_EQUAL(room.send("x").error().code, PF_CODE_HANDLE);
        CHECK_EQUAL(room.request("x").wait().error().code, PF_CODE_HANDLE);
        CHECK_EQUAL(room.leave().wait().error().code, PF_CODE_HANDLE);
        CHECK_EQUAL(room.on_change("**", [](const Change &) {}).error().code, PF_CODE_HANDLE);
        CHECK_EQUAL(room.unwatch(1).error().code, PF_CODE_HANDLE);
        CHECK(!room.state() && room.id().empty() && room.player() == 0 && room.version() == 0);
        CHECK(!room.ending());
        channel.on_publication([](const Publication &) {});
        CHECK(channel.name().empty() && channel.position().offset == 0);
        device.on_command([](Command) {});
        CHECK_EQUAL(device.report(1).wait().error().code, PF_CODE_HANDLE);
        CHECK_EQUAL(device.report_unconfirmed(1).error().code, PF_CODE_HANDLE);
    };
    nothing({}, {}, {}, {});
    auto client = VALUE(Client::create(Options{.url = "tcp://127.0.0.1:1"}));
    auto moved = std::move(client);
    nothing(client, {}, {}, {});
    CHECK(moved);
    CHECK_EQUAL(Result<int>(1).error().code, PF_CODE_OK);
    CHECK_EQUAL(Result<void>().error().code, PF_CODE_OK);
}

static void a_future_is_used_once(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    auto ask = [&] { return room.request("Add", 1); };
    for (int how = 0; how < 3; ++how) {
        auto reply = ask();
        if (how == 0) {
            CHECK(std::move(reply).wait());
        } else if (how == 1) {
            std::move(reply).then([](Result<Document>) {});
        } else {
            [](Future<Document> &awaited) -> Future<void> {
                (void)co_await std::move(awaited);
            }(reply).detach();
        }
        CHECK(!reply.ready());
        CHECK_EQUAL(std::move(reply).wait().error().code, PF_CODE_USAGE);
        bool called = false;
        std::move(reply).then([&](Result<Document> result) {
            called = result.error().code == PF_CODE_USAGE;
        });
        CHECK(called);
        auto awaits = [](Future<Document> &awaited) -> Future<bool> {
            auto result = co_await std::move(awaited);
            co_return result.error().code == PF_CODE_USAGE;
        };
        CHECK(VALUE(awaits(reply).wait()));
        std::move(reply).detach();
    }
    // What nobody waits for is answered all the same, whether it comes before or after its client.
    for (int i = 0; i < 10; ++i) ask().detach();
    UNTIL(client, client.statistics().answers == client.statistics().requests);
    { auto abandoned = ask(); }
    auto late = ask();
    CHECK_EQUAL(std::move(late).wait(std::chrono::milliseconds(0)).error().code, PF_CODE_TIMED_OUT);
    auto later = ask();
    room = Room();
    client = Client();
    CHECK(!std::move(later).wait());
}

/// A coroutine that its owner may destroy while it waits.
struct Task {
    struct promise_type {
        Task get_return_object() {
            return Task{std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::abort(); }
    };
    explicit Task(std::coroutine_handle<promise_type> made) : handle(made) {}
    Task(const Task &) = delete;
    Task &operator=(const Task &) = delete;
    ~Task() {
        if (handle) handle.destroy();
    }
    std::coroutine_handle<promise_type> handle;
};

static void a_coroutine_may_be_destroyed_while_it_waits(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    int resumed = 0, ended = 0;
    struct Ends {
        int &ended;
        ~Ends() { ++ended; }
    };
    auto waits = [&](bool entering) -> Task {
        Ends ends{ended};
        if (entering) (void)co_await client.create_room("hello");
        else (void)co_await room.request("Add", 1);
        ++resumed;
    };
    for (bool entering : {false, true}) { auto destroyed = waits(entering); }
    CHECK_EQUAL(ended, 2);
    auto kept = waits(false);
    UNTIL(client, resumed == 1);
    // The room that was entered for nobody is left.
    UNTIL(client, client.statistics().answers == client.statistics().requests);
    UNTIL(client, client.statistics().rooms == 1);
    CHECK_EQUAL(resumed, 1);

    // It is destroyed by a callback that comes before its own answer.
    auto *task = new Task(waits(false));
    CHECK_EQUAL(VALUE(room.request("Add", 0).wait()).as<int>(), 3);
    delete task;
    task = nullptr;
    room.on_event("Said", [&](Value) { delete std::exchange(task, nullptr); });
    VALUE(room.send("Say", Json::object({{"text", "x"}})));
    task = new Task(waits(false));
    UNTIL(client, task == nullptr);
    // And by the end of the client.
    { auto last = waits(false); client.free(); CHECK(last.handle.done()); }
}

static void callbacks_may_drop_everything(const test::Node &node) {
    for (int how = 0; how < 5; ++how) {
        auto client = std::make_unique<Client>(test::open(node.tcp()));
        auto room = std::make_unique<Room>(VALUE(client->create_room("hello").wait()));
        auto channel = std::make_unique<Channel>(VALUE(client->subscribe("chat:x").wait()));
        bool over = false;
        auto drop = [&] {
            if (how == 4) client->close().detach();
            client.reset();
            room.reset();
            channel.reset();
            over = true;
        };
        if (how == 0) room->on_event("Said", [&](Value) { drop(); });
        if (how == 1) room->on_state([&] { drop(); });
        if (how == 2) channel->on_publication([&](const Publication &) { drop(); });
        VALUE(client->publish_unconfirmed("chat:x", 1));
        VALUE(room->send("Say", Json::object({{"text", "x"}})));
        if (how >= 3) {
            room->request("Add", 1).then([&](Result<Document> reply) {
                CHECK(reply);
                drop();
            });
        }
        while (!over) VALUE(client->poll(std::chrono::milliseconds(100)));
    }
}

#if PLAYFIELD_EXCEPTIONS
/// All of them get their results, and one of the exceptions comes out.
static void callbacks_that_throw_stop_no_others(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    int results = 0;
    auto ask = [&] {
        for (int place = 0; place < 10; ++place) {
            room.request("Add", 1).then([&results, place](Result<Document>) {
                ++results;
                if (place % 3 == 2) throw std::runtime_error("thrown");
            });
        }
    };
    auto throws = [](auto call) {
        try {
            call();
        } catch (const std::runtime_error &) {
            return true;
        }
        return false;
    };
    bool is_named = false;
    room.on_event([](const RoomEvent &) { throw std::runtime_error("thrown"); });
    room.on_event("Said", [&](Value) { is_named = true; });
    VALUE(room.send("Say", Json::object({{"text", "x"}})));
    CHECK(throws([&] {
        while (!is_named) VALUE(client.poll(std::chrono::milliseconds(100)));
    }));
    CHECK(is_named);
    room.on_event(nullptr);

    client.on_ended([](const Error &) { throw std::runtime_error("thrown"); });
    auto closed = client.close();
    CHECK(throws([&] { (void)std::move(closed).wait(); }));
    auto again = client.close();
    CHECK(std::move(again).wait());

    auto freed = test::open(node.tcp());
    room = VALUE(freed.create_room("hello").wait());
    ask();
    CHECK(throws([&] { freed.free(); }));
    CHECK_EQUAL(results, 10);

    results = 0;
    {
        auto dropped = test::open(node.tcp());
        room = VALUE(dropped.create_room("hello").wait());
        ask();
        room = {};
    }
    CHECK_EQUAL(results, 10);
}
#endif

/// Leaks are reported by the address sanitizer.
static void free_drops_what_callbacks_hold(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    auto channel = VALUE(client.subscribe("chat:x").wait());
    auto watched = std::make_shared<int>();
    client.on_lost([client, watched](const Error &) {});
    room.on_state([room, watched] {});
    room.on_event("Said", [room, watched](Value) {});
    (void)room.on_change("**", [room, watched](const Change &) {});
    channel.on_publication([channel, client, watched](const Publication &) {});
    CHECK(watched.use_count() > 5);
    client.free();
    CHECK_EQUAL(watched.use_count(), 1);
}

static void a_wait_may_be_as_long_as_a_time_can_be(const test::Node &node) {
    auto client = test::open(node.tcp());
    CHECK(client.ping().wait(std::chrono::milliseconds::max()));
}

static void everything_fails_after_the_end(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    auto channel = VALUE(client.subscribe("chat:x").wait());
    auto device = VALUE(client.register_device(Registration("misuse")).wait());
    auto state = room.state();
    auto fail = [&](pf_code code) {
        CHECK_EQUAL(client.join("x").wait().error().code, code);
        CHECK_EQUAL(client.ping().wait().error().code, code);
        CHECK_EQUAL(client.publish("chat:x", 1).wait().error().code, code);
        CHECK_EQUAL(room.send("Say", Json::object({{"text", "x"}})).error().code, code);
        CHECK_EQUAL(room.request("Add", 1).wait().error().code, code);
        CHECK_EQUAL(room.leave().wait().error().code, code);
        CHECK_EQUAL(device.report(1).wait().error().code, code);
    };
    VALUE(client.close().wait());
    fail(PF_CODE_CLOSED);
    VALUE(client.close().wait());
    CHECK_EQUAL(client.connect().wait().error().code, PF_CODE_USAGE);
    CHECK(client.poll());
    client.free();
    client.free();
    fail(PF_CODE_FREED);
    CHECK(!state);
    CHECK_EQUAL(client.poll().error().code, PF_CODE_FREED);
}

/// In a child process: its calls fail, and do not wait for what only the parent has.
static void a_forked_process_gets_errors(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    // A thread that holds the library's locks every now and then, also when the process forks.
    std::atomic<bool> over = false;
    std::thread uses([&, raw = room.raw()] {
        while (!over) {
            pf_value state{};
            (void)pf_room_state(raw, &state);
        }
    });
    for (int i = 0; i < 20; ++i) {
        pid_t child = fork();
        if (child == 0) {
            auto refused = [](const Error &error) { return error.code == PF_CODE_USAGE; };
            Options options;
            options.url = node.tcp();
            bool is = refused(client.poll(std::chrono::seconds(60)).error()) &&
                      refused(room.send("Say").error()) &&
                      refused(room.request("Add", 1).wait().error()) &&
                      refused(Client::create(options).error()) && refused(shut_down().error()) &&
                      !room.state();
            room = Room();
            client = Client();
            _exit(is ? 0 : 1);
        }
        CHECK(child > 0);
        int status = 0;
        CHECK_EQUAL(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    over = true;
    uses.join();
    // The parent has noticed nothing.
    CHECK_EQUAL(VALUE(room.request("Add", 1).wait()).as<int>(), 1);
}

int main() {
    test::Node node;
    what_refers_to_nothing_fails();
    a_future_is_used_once(node);
    a_coroutine_may_be_destroyed_while_it_waits(node);
    callbacks_may_drop_everything(node);
#if PLAYFIELD_EXCEPTIONS
    callbacks_that_throw_stop_no_others(node);
#endif
    free_drops_what_callbacks_hold(node);
    a_wait_may_be_as_long_as_a_time_can_be(node);
    everything_fails_after_the_end(node);
    a_forked_process_gets_errors(node);
    VALUE(shut_down());
    // Its thread is gone, so a process that forks now may use the library.
    pid_t child = fork();
    if (child == 0) {
        auto client = Client::open(Options{.url = node.tcp()});
        _exit(client ? 0 : 1);
    }
    int status = 0;
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
