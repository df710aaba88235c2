// A server on loopback that sends WebSocket messages back, with uWebSockets. It prints its port and
// the version of the package that has the sources, and ends when standard input is closed.

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "App.h"

struct Nothing {};

int main() {
    std::thread([] {
        while (getchar() != EOF) {
        }
        std::_Exit(0);
    }).detach();
    uWS::App()
        .ws<Nothing>(
            "/*",
            {.compression = uWS::DISABLED,
             .maxPayloadLength = 1 << 20,
             .idleTimeout = 0,
             .maxBackpressure = 64 << 20,
             .message = [](auto *socket, std::string_view message,
                           uWS::OpCode opcode) { socket->send(message, opcode); }})
        .listen("127.0.0.1", 0,
                [](us_listen_socket_t *listening) {
                    if (!listening) {
                        std::fputs("no port\n", stderr);
                        std::_Exit(1);
                    }
                    auto *socket = reinterpret_cast<us_socket_t *>(listening);
                    std::printf("%d %s\n", us_socket_local_port(0, socket), PACKAGE_VERSION);
                    std::fflush(stdout);
                })
        .run();
}
