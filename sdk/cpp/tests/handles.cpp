// The C ABI, given what it must not be given: error codes, never a crash.

#include "support.hpp"

using namespace playfield;

/// Calls every function that takes a handle of a client.
static std::vector<pf_code> client_calls(pf_client client) {
    std::uint64_t request = 0;
    pf_event event{};
    pf_statistics statistics{};
    return {
        pf_client_set_text(client, PF_OPTION_NAME, pf_str("x")),
        pf_client_set_number(client, PF_OPTION_DEFLATE, 1),
        pf_client_connect(client),
        pf_client_next(client, 0, &event),
        pf_client_wake(client),
        pf_client_give_token(client, 1, pf_str("x")),
        pf_client_close(client),
        pf_client_statistics(client, &statistics),
        pf_client_join(client, pf_str("x"), &request),
        pf_client_join_by_key(client, pf_str("x"), pf_str("x"), &request),
        pf_client_join_or_create(client, pf_str("x"), pf_str("x"), pf_str("{}"), &request),
        pf_client_create(client, pf_str("x"), 0, pf_str("x"), pf_str("{}"), &request),
        pf_client_list(client, pf_str("x"), pf_str("{}"), 0, &request),
        pf_client_schema(client, pf_str("x"), &request),
        pf_client_ping(client, &request),
        pf_client_suspect(client),
        pf_client_subscribe(client, pf_str("x"), false, 0, 0, &request),
        pf_client_publish(client, pf_str("x"), pf_str("1"), false, &request),
        pf_client_members(client, pf_str("x"), &request),
        pf_client_history(client, pf_str("x"), 0, 0, 0, &request),
        pf_client_free(client),
    };
}

static std::vector<pf_code> room_calls(pf_room room) {
    std::uint64_t number = 0;
    pf_value state{};
    pf_room_info info{};
    return {
        pf_room_state(room, &state),
        pf_room_get_info(room, &info),
        pf_room_send(room, pf_str("x"), pf_str("1")),
        pf_room_request(room, pf_str("x"), pf_str("1"), &number),
        pf_room_watch(room, pf_str("**"), &number),
        pf_room_unwatch(room, 1),
        pf_room_leave(room, &number),
        pf_room_free(room),
    };
}

static std::vector<pf_code> value_calls(pf_value value) {
    pf_value found{};
    pf_entry entry{};
    pf_tree tree{};
    pf_text text{};
    std::size_t written = 0;
    bool yes = false;
    std::int64_t signed_number = 0;
    std::uint64_t number = 0;
    double real = 0;
    CHECK_EQUAL(pf_value_kind(value), PF_KIND_NONE);
    CHECK_EQUAL(pf_value_size(value), 0u);
    return {
        pf_value_get(value, pf_str("x"), &found),
        pf_value_member(value, pf_str("x"), &found),
        pf_value_entries(value, 0, &entry, 1, &written),
        pf_value_bool(value, &yes),
        pf_value_i64(value, &signed_number),
        pf_value_u64(value, &number),
        pf_value_f64(value, &real),
        pf_value_text(value, &text),
        pf_value_bytes(value, &text),
        pf_value_json(value, &text),
        pf_value_equal(value, value, &yes),
        pf_value_keep(value, &tree, &found),
    };
}

static void all_are(pf_code expected, const std::vector<pf_code> &codes) {
    for (pf_code code : codes) CHECK_EQUAL(code, expected);
    CHECK(pf_error_message().length > 0);
}

static std::vector<pf_code> channel_calls(pf_channel channel) {
    std::uint64_t epoch = 0, offset = 0;
    return {pf_channel_position(channel, &epoch, &offset), pf_channel_free(channel)};
}

static void null_freed_and_foreign_handles(const test::Node &node) {
    auto client = test::open(node.tcp());
    auto room = VALUE(client.create_room("hello").wait());
    auto channel = VALUE(client.subscribe("chat:x").wait());
    auto document = VALUE(Document::parse("{\"a\": 1}"));
    // 0, those of the other kinds, and those that were never given out.
    std::vector<std::uint64_t> foreign = {0, 1, UINT64_MAX, document.raw().tree};
    foreign.push_back(client.raw().id + (std::uint64_t(7) << 24));
    foreign.push_back(client.raw().id | 0xffffff);
    for (std::uint64_t id : foreign) {
        if (id != client.raw().id) all_are(PF_CODE_HANDLE, client_calls({id}));
        all_are(PF_CODE_HANDLE, room_calls({id}));
        all_are(PF_CODE_HANDLE, channel_calls({id}));
    }
    all_are(PF_CODE_HANDLE, client_calls({room.raw().id}));
    all_are(PF_CODE_HANDLE, client_calls({channel.raw().id}));
    all_are(PF_CODE_HANDLE, room_calls({client.raw().id}));
    all_are(PF_CODE_HANDLE, channel_calls({room.raw().id}));
    CHECK_EQUAL(pf_tree_free({room.raw().id}), PF_CODE_HANDLE);
    CHECK_EQUAL(pf_tree_free({room.state().raw().tree}), PF_CODE_HANDLE);
    CHECK(room.state());

    all_are(PF_CODE_NOT_FOUND, value_calls({}));
    auto whole = document.raw(), part = document["a"].raw(), state = room.state().raw();
    all_are(PF_CODE_HANDLE, value_calls({whole.tree, part.node, whole.check}));
    all_are(PF_CODE_HANDLE, value_calls({state.tree, whole.node, whole.check}));
    all_are(PF_CODE_HANDLE, value_calls({whole.tree, 8, 0}));
    all_are(PF_CODE_HANDLE, value_calls({client.raw().id, whole.node, whole.check}));

    pf_client gone{};
    CHECK_EQUAL(pf_client_new(pf_str("tcp://127.0.0.1:1"), &gone), PF_CODE_OK);
    CHECK_EQUAL(pf_client_free(gone), PF_CODE_OK);
    all_are(PF_CODE_FREED, client_calls(gone));
    // Its place in the table has another generation now.
    pf_client next{};
    CHECK_EQUAL(pf_client_new(pf_str("tcp://127.0.0.1:1"), &next), PF_CODE_OK);
    CHECK(next.id != gone.id);
    all_are(PF_CODE_FREED, client_calls(gone));
    CHECK_EQUAL(pf_client_free(next), PF_CODE_OK);

    pf_room raw = room.raw();
    pf_channel raw_channel = channel.raw();
    pf_value old = room.state().raw();
    client.free();
    all_are(PF_CODE_FREED, room_calls(raw));
    all_are(PF_CODE_FREED, channel_calls(raw_channel));
    all_are(PF_CODE_STALE, value_calls(old));
}

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
    CHECK_EQUAL(pf_client_set_number(client, PF_OPTION_COMMANDS_MAX, UINT64_MAX), PF_CODE_OK);
    CHECK_EQUAL(pf_client_set_number(client, PF_OPTION_TIMEOUT_MS, UINT64_MAX), PF_CODE_OK);
    CHECK_EQUAL(pf_client_set_number(client, PF_OPTION_RECONNECT_FOR_MS, UINT64_MAX), PF_CODE_OK);
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

int main() {
    test::Node node;
    null_freed_and_foreign_handles(node);
    null_pointers_and_bad_text();
    past_the_limits(node);
    CHECK_EQUAL(pf_shut_down(), PF_CODE_OK);
    CHECK_EQUAL(pf_shut_down(), PF_CODE_OK);
}
