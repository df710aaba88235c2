// The showcase's arena in a terminal: every ship, every spark, at the rate of the node.
//
//     make run                                     # in another terminal
//     target/cpp/release/examples/arena tcp://127.0.0.1:7350 Ann
//
// The ship heads for the nearest spark by itself. With a third argument it ends after that many
// updates of the state.

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include <playfield.hpp>

using namespace playfield;

namespace {

constexpr int columns = 80;
constexpr int rows = 24;
constexpr double size = 1000;

volatile std::sig_atomic_t stopped = 0;

struct Place {
    double x = 0;
    double y = 0;
};

Place place(Value of) { return {of["x"].as<double>(), of["y"].as<double>()}; }

void draw(const Room &room) {
    std::vector<std::string> picture(rows, std::string(columns, ' '));
    auto put = [&](Place at, char letter) {
        int column = std::clamp(int(at.x / size * columns), 0, columns - 1);
        int row = std::clamp(int(at.y / size * rows), 0, rows - 1);
        picture[std::size_t(row)][std::size_t(column)] = letter;
    };
    Value state = room.state();
    for (const auto &[id, spark] : state["sparks"].entries()) put(place(spark), '.');
    std::string scores;
    for (const auto &[id, ship] : state["ships"].entries()) {
        std::string name = ship["name"].text();
        bool own = id == std::to_string(room.player());
        put(place(ship), own ? '@' : name.empty() ? 'o' : name[0]);
        scores += name + ' ' + std::to_string(ship["score"].as<int>()) + "  ";
    }
    std::cout << "\033[H";
    for (const auto &line : picture) std::cout << line << '\n';
    std::cout << scores << "\033[K" << std::endl;
}

/// Heads for the nearest spark.
void steer(Room &room) {
    Value state = room.state();
    Value ship = state["ships"][room.player()];
    if (!ship) return;
    Place own = place(ship);
    double nearest = 1e9, angle = 0;
    for (const auto &[id, spark] : state["sparks"].entries()) {
        Place at = place(spark);
        double distance = std::hypot(at.x - own.x, at.y - own.y);
        if (distance < nearest) {
            nearest = distance;
            angle = std::atan2(at.y - own.y, at.x - own.x);
        }
    }
    (void)room.send("Steer", Json::object({{"angle", float(angle)}}));
}

int play(int count, char **arguments) {
    Options options;
    options.url = count > 1 ? arguments[1] : "tcp://127.0.0.1:7350";
    options.name = count > 2 ? arguments[2] : "Terminal";
    long most = count > 3 ? std::atol(arguments[3]) : 0;

    auto client = Client::open(options);
    if (!client) {
        std::cerr << client.error().message << std::endl;
        return 1;
    }
    auto joined = client->join_or_create("arena").wait();
    if (!joined) {
        std::cerr << joined.error().message << std::endl;
        return 1;
    }
    Room room = *joined;
    bool over = false;
    long updates = 0;
    std::cout << "\033[2J";
    room.on_state([&] {
        if (over) return; // One poll may have several.
        draw(room);
        steer(room);
        over |= ++updates == most;
    });
    room.on_left([&](const Error &error) {
        if (!over) std::cerr << error.message << std::endl;
        over = true;
    });
    client->on_lost([](const Error &error) { std::cerr << error.message << std::endl; });
    client->on_ended([&](const Error &) { over = true; });

    while (!over && !stopped) {
        // A game would do its own work here, and poll without waiting.
        if (!client->poll(std::chrono::milliseconds(100))) break;
    }
    auto statistics = client->statistics();
    std::cout << updates << " updates, " << statistics.sends << " sends, round trip "
              << statistics.round_trip_us << " us" << std::endl;
    (void)client->close().wait();
    return 0;
}

} // namespace

int main(int count, char **arguments) {
    std::signal(SIGINT, [](int) { stopped = 1; });
    return play(count, arguments);
}
