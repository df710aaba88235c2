// The C ABI from several threads at once.

#include <atomic>
#include <thread>

#include "support.hpp"

using namespace playfield;

static void one_thread_at_a_time_waits_for_events(const test::Node &node) {
    auto client = test::open(node.tcp());
    pf_client raw = client.raw();
    while (VALUE(client.poll()) > 0) {}
    std::atomic<int> returned = 0;
    std::atomic<int> in_use = 0;
    auto wait = [&] {
        pf_event event{};
        pf_code code = pf_client_next(raw, 60'000, &event);
        if (code == PF_CODE_IN_USE) ++in_use;
        else CHECK_EQUAL(code, PF_CODE_OK);
        ++returned;
    };
    std::thread one(wait), other(wait);
    while (in_use == 0) std::this_thread::yield();
    CHECK_EQUAL(pf_client_wake(raw), PF_CODE_OK);
    one.join();
    other.join();
    CHECK_EQUAL(returned.load(), 2);
    CHECK_EQUAL(in_use.load(), 1);
}

static void a_second_thread_that_polls_is_refused(const test::Node &node) {
    auto client = test::open(node.tcp());
    while (VALUE(client.poll()) > 0) {}
    std::atomic<int> refused = 0;
    auto poll = [&] {
        auto polled = client.poll(std::chrono::minutes(1));
        if (polled) return;
        CHECK_EQUAL(polled.error().code, PF_CODE_USAGE);
        ++refused;
    };
    std::thread one(poll), other(poll);
    while (refused == 0) std::this_thread::yield();
    client.wake();
    one.join();
    other.join();
    CHECK_EQUAL(refused.load(), 1);
    CHECK(client.ping().wait());
}

static void freeing_returns_who_waits(const test::Node &node) {
    for (int i = 0; i < 20; ++i) {
        auto client = test::open(node.tcp());
        pf_client raw = client.raw();
        std::thread waits([raw] {
            pf_event event{};
            pf_code code = PF_CODE_OK;
            while (code == PF_CODE_OK) code = pf_client_next(raw, 60'000, &event);
            CHECK(code == PF_CODE_FREED);
        });
        CHECK_EQUAL(pf_client_free(raw), PF_CODE_OK);
        waits.join();
    }
}

static void commands_come_from_any_thread(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    pf_room raw = room.raw();
    constexpr int threads = 4, each = 200;
    std::atomic<int> refused = 0;
    std::vector<std::thread> senders;
    for (int i = 0; i < threads; ++i) {
        senders.emplace_back([&, raw] {
            for (int j = 0; j < each; ++j) {
                std::uint64_t request = 0;
                if (pf_room_request(raw, pf_str("Add"), pf_str("1"), &request) != PF_CODE_OK) ++refused;
            }
        });
    }
    std::thread reader([raw] {
        for (int i = 0; i < 500; ++i) {
            pf_value state{}, count{};
            if (pf_room_state(raw, &state) != PF_CODE_OK) continue;
            std::int64_t number = 0;
            // The state may have moved meanwhile.
            if (pf_value_get(state, pf_str("count"), &count) == PF_CODE_OK) {
                pf_code code = pf_value_i64(count, &number);
                CHECK(code == PF_CODE_OK || code == PF_CODE_STALE);
            }
        }
    });
    int replies = 0;
    while (replies < threads * each) {
        pf_event event{};
        CHECK_EQUAL(pf_client_next(client.raw(), 60'000, &event), PF_CODE_OK);
        CHECK(event.kind != PF_EVENT_KIND_NONE);
        replies += event.kind == PF_EVENT_KIND_REPLY && event.code == PF_CODE_OK;
    }
    for (auto &sender : senders) sender.join();
    reader.join();
    CHECK_EQUAL(refused.load(), 0);
    CHECK_EQUAL(VALUE(room.request("Add", 0).wait()).as<int>(), threads * each);
}

static void rooms_are_freed_while_others_use_them(const test::Node &node) {
    auto client = test::open(node.tcp());
    for (int i = 0; i < 10; ++i) {
        auto room = VALUE(client.create_room("hello").wait());
        pf_room raw = room.raw();
        std::atomic<bool> over = false;
        std::thread uses([&, raw] {
            while (!over) {
                pf_value state{};
                pf_text json{};
                std::uint64_t request = 0;
                pf_code code = pf_room_state(raw, &state);
                CHECK(code == PF_CODE_OK || code == PF_CODE_FREED);
                (void)pf_value_json(state, &json);
                (void)pf_room_request(raw, pf_str("Add"), pf_str("1"), &request);
            }
        });
        for (int j = 0; j < 5; ++j) VALUE(client.poll(std::chrono::milliseconds(1)));
        CHECK_EQUAL(pf_room_free(raw), PF_CODE_OK);
        over = true;
        uses.join();
    }
}

static void each_thread_has_a_client(const test::Node &node) {
    std::vector<std::thread> players;
    for (int i = 0; i < 4; ++i) {
        players.emplace_back([&node] {
            auto client = test::open(node.ws());
            auto room = VALUE(client.create_room("hello").wait());
            for (int j = 1; j <= 20; ++j) {
                CHECK_EQUAL(VALUE(room.request("Add", 1).wait()).as<int>(), j);
            }
            CHECK(!room.request("Add", INT64_MAX).wait());
            VALUE(client.close().wait());
        });
    }
    for (auto &player : players) player.join();
}

int main() {
    test::Node node;
    one_thread_at_a_time_waits_for_events(node);
    a_second_thread_that_polls_is_refused(node);
    freeing_returns_who_waits(node);
    commands_come_from_any_thread(node);
    rooms_are_freed_while_others_use_them(node);
    each_thread_has_a_client(node);
    VALUE(shut_down());
}
