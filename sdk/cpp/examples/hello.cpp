// The smallest client: counts in the showcase's counter, and says what happens.
//
//     make run                                     # in another terminal
//     target/cpp/release/examples/hello tcp://127.0.0.1:7350 Ann

#include <iostream>

#include <playfield.hpp>

using namespace playfield;

// A coroutine resumes in poll() whenever what it awaits is there.
static Future<int> play(Client client) {
    Room room = (co_await client.join_or_create("counter")).value();
    std::cout << "player " << room.player() << " in " << room.id() << std::endl;

    (void)room.on_change("value", [](const Change &change) {
        std::cout << "the value was " << change.before.json() << " and is " << change.after.json()
                  << std::endl;
    });
    Document reply = (co_await room.request("Add", 2)).value();
    std::cout << "after adding 2 it is " << reply.as<int>() << std::endl;

    (co_await room.leave()).value();
    co_return reply.as<int>();
}

int main(int count, char **arguments) {
    Options options;
    options.url = count > 1 ? arguments[1] : "tcp://127.0.0.1:7350";
    options.name = count > 2 ? arguments[2] : "someone";
    auto client = Client::open(options);
    if (!client) {
        std::cerr << client.error().message << std::endl;
        return 1;
    }
    auto played = play(*client).wait();
    if (!played) std::cerr << played.error().message << std::endl;
    (void)client->close().wait();
    return played ? 0 : 1;
}
