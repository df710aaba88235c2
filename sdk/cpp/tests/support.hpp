// What all tests use: checks that stop the test, and nodes that end with it.

#pragma once

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <playfield.hpp>

extern char **environ;

namespace test {

/// The processes of this test. One that outlived it would hold its output, and CTest would wait.
inline std::vector<pid_t> &running() {
    static std::vector<pid_t> all;
    return all;
}

[[noreturn]] inline void fail(const char *file, int line, const std::string &what) {
    std::cerr << file << ':' << line << ": " << what << std::endl;
    for (pid_t id : running()) kill(id, SIGKILL);
    std::exit(1);
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) test::fail(__FILE__, __LINE__, "not so: " #condition);                   \
    } while (false)

#define CHECK_EQUAL(one, other)                                                                    \
    do {                                                                                           \
        auto a = (one);                                                                            \
        auto b = (other);                                                                          \
        if (!(a == b)) {                                                                           \
            std::ostringstream what;                                                               \
            what << #one << " is " << a << ", not " << b;                                          \
            test::fail(__FILE__, __LINE__, what.str());                                            \
        }                                                                                          \
    } while (false)

/// The value of a result, which the test can't go on without.
#define VALUE(result) test::value((result), __FILE__, __LINE__)

template <class T> T value(playfield::Result<T> result, const char *file, int line) {
    if (!result) fail(file, line, result.error().message);
    return std::move(result).value();
}
inline void value(playfield::Result<void> result, const char *file, int line) {
    if (!result) fail(file, line, result.error().message);
}

inline std::string environment(const char *name) {
    const char *found = std::getenv(name);
    if (!found) fail(__FILE__, __LINE__, std::string(name) + " is not set: run the tests by ctest");
    return found;
}

inline std::string file(const std::string &path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) fail(__FILE__, __LINE__, path + " can't be read");
    return {std::istreambuf_iterator<char>(stream), {}};
}

/// A program that runs until this is gone: then its standard input ends.
class Process {
public:
    Process(const std::string &program, const std::vector<std::string> &arguments = {},
            const std::vector<std::string> &variables = {}) {
        int in[2], out[2];
        if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
            fail(__FILE__, __LINE__, "there are no pipes");
        }
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        std::vector<char *> argv{const_cast<char *>(program.c_str())};
        for (const auto &argument : arguments) argv.push_back(const_cast<char *>(argument.c_str()));
        argv.push_back(nullptr);
        std::vector<char *> env;
        for (char **variable = environ; *variable; ++variable) env.push_back(*variable);
        for (const auto &variable : variables) env.push_back(const_cast<char *>(variable.c_str()));
        env.push_back(nullptr);
        if (posix_spawn(&id_, program.c_str(), &actions, nullptr, argv.data(), env.data()) != 0) {
            fail(__FILE__, __LINE__, program + " can't be started");
        }
        running().push_back(id_);
        posix_spawn_file_actions_destroy(&actions);
        close(in[0]);
        close(out[1]);
        input_ = in[1];
        output_ = fdopen(out[0], "r");
    }
    Process(const Process &) = delete;
    Process &operator=(const Process &) = delete;
    ~Process() {
        if (id_ > 0) end();
    }

    /// Its next line.
    std::string line() {
        std::string found;
        for (int letter = std::getc(output_); letter != EOF && letter != '\n';
             letter = std::getc(output_)) {
            found += char(letter);
        }
        return found;
    }

    /// All that it still prints.
    std::string rest() {
        std::string found;
        for (int letter = std::getc(output_); letter != EOF; letter = std::getc(output_)) {
            found += char(letter);
        }
        return found;
    }

    /// Ends its input, and returns its exit code.
    int end(bool by_signal = false) {
        close(input_);
        if (by_signal) kill(id_, SIGTERM);
        int status = 0;
        std::erase(running(), id_);
        waitpid(std::exchange(id_, 0), &status, 0);
        std::fclose(output_);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

private:
    pid_t id_ = 0;
    int input_ = -1;
    FILE *output_ = nullptr;
};

/// The node of these tests (crates/ffi/examples/node).
class Node {
public:
    Node() : process_(environment("TEST_NODE")) {
        std::istringstream line(process_.line());
        line >> plain >> secure >> certificate_file >> gate;
        if (gate.empty()) fail(__FILE__, __LINE__, "the node did not start");
    }
    std::string tcp() const { return "tcp://" + plain; }
    std::string ws() const { return "ws://" + plain; }
    /// The certificate is for localhost.
    std::string localhost(const std::string &scheme) const {
        return scheme + "://localhost:" + secure.substr(secure.rfind(':') + 1);
    }
    /// A node that redirects joins to this one.
    std::string redirecting() const { return "tcp://" + gate; }
    std::string plain, secure, certificate_file, gate;

private:
    Process process_;
};

inline playfield::Client open(const std::string &url, const std::string &name = "Ann") {
    playfield::Options options;
    options.url = url;
    options.name = name;
    return VALUE(playfield::Client::open(options));
}

/// Polls until something is so.
template <class So> void until(playfield::Client &client, So so, const char *file, int line) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!so()) {
        if (std::chrono::steady_clock::now() > end) fail(file, line, "it did not happen");
        VALUE(client.poll(std::chrono::milliseconds(100)));
    }
}
#define UNTIL(client, condition) test::until((client), [&] { return bool(condition); }, __FILE__, __LINE__)

} // namespace test
