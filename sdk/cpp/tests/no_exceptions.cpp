// The headers without exceptions.

#include "support.hpp"

#if PLAYFIELD_EXCEPTIONS
#error "exceptions are disabled for this file"
#endif

using namespace playfield;

static Future<int> play(Client client) {
    auto room = co_await client.create_room("hello");
    if (!room) co_return room.error();
    auto reply = co_await room->request("Add", 7);
    if (!reply) co_return reply.error();
    auto refused = co_await room->request("Add", INT64_MAX);
    if (refused) co_return Error{PF_CODE_FAILED, "it was not refused"};
    co_return reply->as<int>();
}

int main() {
    test::Node node;
    auto client = test::open(node.tcp());
    CHECK_EQUAL(VALUE(play(client).wait()), 7);
    VALUE(client.close().wait());
    client.free();
    VALUE(shut_down());
}
