// The C ABI, given arguments and numbers that it must refuse.

#include "support.hpp"

using namespace playfield;

static void null_pointers_and_bad_text() {
    pf_client client{};
    pf_text long_null{nullptr, 5};
    pf_text endless{reinterpret_cast<const std::uint8_t *>("x"), SIZE_MAX};
    pf_text broken{reinterpret_cast<const std::uint8_t *>("\xff\xfe"), 2};
    CHECK_EQUAL(pf_client_new(pf_str("tcp://127.0.0.1:1"), nullptr), PF_CODE_NULL);
    CHECK_EQUAL(pf_client_new(long_null, &client), PF_CODE_NULL);
    CHECK_EQUAL(pf_client_new(endless, &client), PF_CODE_ARGUMENT);
    CHECK_EQUAL(pf_client_new(broken, &client), PF_CODE_ARGUMENT);
    CHECK_EQUAL(pf_client_new(pf_str(nullptr), &client), PF_CODE_ARGUMENT);
    CHECK_EQUAL(client.id, 0u);
    CHECK_EQUAL(pf_client_new(pf_str("tcp://127.0.0.1:1"), &client), PF_CODE_OK);
    CHECK_EQUAL(pf_client_next(client, 0, nullptr), PF_CODE_NULL);
    alignas(8) char odd[sizeof(pf_event) + 1];
    auto *misaligned = reinterpret_cast<pf_event *>(odd + 1);
    CHECK_EQUAL(pf_client_next(client, 0, misaligned), PF_CODE_ARGUMENT);
    CHECK_EQUAL(pf_client_statistics(client, nullptr), PF_CODE_NULL);
    CHECK_EQUAL(pf_client_ping(client, nullptr), PF_CODE_NULL);
    CHECK_EQUAL(pf_client_set_text(client, 99, pf_str("x")), PF_CODE_ARGUMENT);
    CHECK_EQUAL(pf_client_set_text(client, PF_OPTION_NAME, broken), PF_CODE_ARGUMENT);
    CHECK_EQUAL(pf_client_set_number(client, PF_OPTION_NAME, 1), PF_CODE_ARGUMENT);
    CHECK_EQUAL(pf_client_set_number(client, PF_OPTION_EVENTS_MAX, UINT64_MAX), PF_CODE_OK);
    CHECK_EQUAL(pf_client_set_number(client, PF_OPTION_TIMEOUT_MS, UINT64_MAX), PF_CODE_OK);
    CHECK_EQUAL(pf_client_set_number(client, PF_OPTION_RECONNECT_TIMEOUT_MS, UINT64_MAX), PF_CODE_OK);
    CHECK_EQUAL(pf_client_set_number(client, PF_OPTION_BACKOFF_FIRST_MS, UINT64_MAX), PF_CODE_OK);
    CHECK_EQUAL(pf_client_connect(client), PF_CODE_OK);
    CHECK_EQUAL(pf_client_set_text(client, PF_OPTION_NAME, pf_str("x")), PF_CODE_USAGE);
    pf_event event{};
    do {
        CHECK_EQUAL(pf_client_next(client, UINT32_MAX, &event), PF_CODE_OK);
    } while (event.kind == PF_EVENT_KIND_NONE);
    CHECK_EQUAL(event.kind, PF_EVENT_KIND_ENDED);
    CHECK_EQUAL(event.code, PF_CODE_UNREACHABLE);
    std::uint64_t request = 0;
    CHECK_EQUAL(pf_client_create(client, pf_str("x"), 64, pf_str(""), pf_str(""), &request),
                PF_CODE_ARGUMENT);
    CHECK_EQUAL(pf_client_create(client, pf_str("x"), 0, pf_str(""), pf_str("{"), &request),
                PF_CODE_ARGUMENT);
    CHECK_EQUAL(pf_client_join(client, pf_str("x"), &request), PF_CODE_CLOSED);
    CHECK_EQUAL(pf_client_free(client), PF_CODE_OK);
    pf_tree tree{};
    pf_value root{};
    CHECK_EQUAL(pf_json_parse(pf_str("1"), nullptr, &root), PF_CODE_NULL);
    CHECK_EQUAL(pf_json_parse(pf_str("1"), &tree, nullptr), PF_CODE_NULL);
    CHECK_EQUAL(pf_json_parse(broken, &tree, &root), PF_CODE_ARGUMENT);
}

static void past_the_limits(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    std::uint64_t watch = 0;
    for (int i = 0; i < PF_WATCHES_MAX; ++i) {
        CHECK_EQUAL(pf_room_watch(room.raw(), pf_str("nothing"), &watch), PF_CODE_OK);
    }
    CHECK_EQUAL(pf_room_watch(room.raw(), pf_str("nothing"), &watch), PF_CODE_BUSY);
    CHECK_EQUAL(pf_room_watch(room.raw(), pf_str("a..b"), &watch), PF_CODE_ARGUMENT);

    // Nobody polls, so everything waits.
    pf_code code = PF_CODE_OK;
    std::uint64_t request = 0;
    int made = 0;
    while ((code = pf_client_ping(client.raw(), &request)) == PF_CODE_OK) ++made;
    CHECK_EQUAL(code, PF_CODE_BUSY);
    CHECK(made > PF_WAITING_MAX - 100 && made <= PF_WAITING_MAX);
}

/// It stopped the thread under clients that were connected: what they waited for never came.
static void the_thread_is_not_stopped_under_clients(const test::Node &node) {
    CHECK_EQUAL(pf_shut_down(), PF_CODE_OK);
    auto refused = [](std::string_view why) {
        CHECK_EQUAL(pf_shut_down(), PF_CODE_USAGE);
        CHECK_EQUAL(playfield::detail::view(pf_error_message()), why);
    };
    auto unconnected = VALUE(playfield::Client::create({.url = node.tcp()}));
    CHECK_EQUAL(pf_shut_down(), PF_CODE_OK);
    auto first = test::open(node.tcp());
    {
        auto second = test::open(node.ws());
        refused("2 clients that have connected are not freed: free them first");
        VALUE(second.close().wait());
        refused("2 clients that have connected are not freed: free them first");
    }
    refused("1 client that has connected is not freed: free it first");
    // Nothing was done.
    CHECK(first.ping().wait());
    first.free();
    CHECK_EQUAL(pf_shut_down(), PF_CODE_OK);
    CHECK(test::open(node.tcp()).ping().wait());
    CHECK_EQUAL(pf_shut_down(), PF_CODE_OK);
}

int main() {
    test::Node node;
    null_pointers_and_bad_text();
    past_the_limits(node);
    the_thread_is_not_stopped_under_clients(node);
    CHECK_EQUAL(pf_shut_down(), PF_CODE_OK);
    CHECK_EQUAL(pf_shut_down(), PF_CODE_OK);
}
