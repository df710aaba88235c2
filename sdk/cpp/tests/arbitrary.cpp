// Arbitrary calls of the C ABI: test_arbitrary [SECONDS] [SEED]. Each must return a code, and what it
// returns must be there to read.

#include <array>
#include <chrono>
#include <functional>
#include <random>
#include <span>

#include "support.hpp"

namespace {

std::uint64_t checksum = 0;

/// Reads every byte, so that a sanitizer sees what is gone.
void touch(pf_text text) {
    for (std::size_t i = 0; i < text.length; ++i) checksum += text.data[i];
}

class Calls {
public:
    Calls(const test::Node &node, std::uint64_t seed) : random_(seed) {
        texts_ = {"", "x", "hello", "hall", "Say", "Add", "Ask", "Nothing", "1", "null", "[]", "{",
                  R"({"text":"x"})", R"({"data":"AAAA"})", R"({"greeting":"hi"})", R"({"a":{"b":[1,"2",3.5]}})",
                  R"("\ud800")", "1e999", "a.b.1", "\"a.b\".c", "players.*.name", "**", "a..b", "\"",
                  "chat:x", "chat:", "Said", "\x03", "\x04", "\x01x", "packed", "json", "msgpack", "xml", "meter", "stolen",
                  R"({"model":"x"})", R"({"model":1})", R"(["north"])", "ask", "\"ask\"", "\"push\"",
                  "Nobody", "wrong", "gone", node.tcp(), node.ws(), node.redirecting(),
                  node.redirecting(), "tcp://127.0.0.1:1", "tls://127.0.0.1:1",
                  "ws://", "tcp://[::1", std::string("a\0b", 3), "\xff\xfe", "é\u2028",
                  std::string(5000, '['), std::string(70000, 'x'), test::file(node.certificate_file)};
    }

    /// Makes one call, which is any.
    void call() {
        pf_code code = PF_CODE_OK;
        switch (random_() % 50) {
        case 0: case 1: code = make_client(); break;
        case 2: code = pf_client_connect({id(client)}); break;
        case 3: case 4: case 5: case 6: case 7: case 8: case 9: case 10: code = next(); break;
        case 11: code = pf_client_set_text({id(client)}, option(), text()); break;
        case 12: code = pf_client_set_number({id(client)}, option(), number()); break;
        case 13: code = pf_client_wake({id(client)}); break;
        case 14: code = pf_client_give_token({id(client)}, number(), text()); break;
        case 15: code = rarely(10) ? pf_client_close({id(client)}) : PF_CODE_OK; break;
        case 16: code = free_client(rarely(10)); break;
        case 17: {
            pf_statistics found{};
            code = pf_client_statistics({id(client)}, place(&found));
            break;
        }
        case 18: code = pf_client_join({id(client)}, text(), request()); break;
        case 19: code = pf_client_join_by_key({id(client)}, text(), text(), request()); break;
        case 20: case 21:
            code = pf_client_join_or_create({id(client)}, text(), text(), text(), request());
            break;
        case 22:
            code = pf_client_create({id(client)}, text(), std::uint32_t(random_() % 5), text(), text(),
                                    request());
            break;
        case 23: code = pf_client_list({id(client)}, text(), text(), 5, request()); break;
        case 24: code = pf_client_schema({id(client)}, text(), request()); break;
        case 25: code = pf_client_ping({id(client)}, request()); break;
        case 26: code = pf_client_suspect({id(client)}); break;
        case 27:
            code = pf_client_subscribe({id(client)}, text(), flag(), number(), number(), request());
            break;
        case 28: code = pf_client_publish({id(client)}, text(), text(), flag(), request()); break;
        case 29: code = pf_client_publish_unconfirmed({id(client)}, text(), text(), flag()); break;
        case 30: code = pf_client_members({id(client)}, text(), request()); break;
        case 31:
            code = pf_client_history({id(client)}, text(), number(), number(), 5, request());
            break;
        case 32: code = pf_client_register({id(client)}, text(), text(), text(), request()); break;
        case 33: code = of_channel(); break;
        case 34: case 35: code = of_device(); break;
        case 36: case 37: case 38: case 39: code = of_room(); break;
        case 40: {
            pf_tree made{};
            pf_value root{};
            code = pf_json_parse(text(), place(&made), place(&root));
            keep(made, root);
            break;
        }
        case 41: {
            pf_tree made{};
            pf_value root{};
            code = pf_value_keep(value(), place(&made), place(&root));
            keep(made, root);
            break;
        }
        case 42: code = pf_tree_free({id(tree)}); break;
        case 43: code = rarely(100) ? pf_shut_down() : PF_CODE_OK; break;
        default: code = of_value(); break;
        }
        CHECK(code <= PF_CODE_FAILED);
        if (code != PF_CODE_OK) touch(pf_error_message());
        ++codes[code];
    }

    ~Calls() {
        for (auto &ids : ids_) {
            for (std::uint64_t id : ids) {
                (void)pf_room_free({id});
                (void)pf_tree_free({id});
                (void)pf_client_free({id});
            }
        }
        (void)pf_shut_down();
    }

    std::array<std::uint64_t, PF_CODE_PANIC + 1> codes{};

private:
    enum Kind { client, room, channel, device, tree, kinds };

    bool flag() { return random_() % 2 == 0; }
    bool rarely(unsigned in) { return random_() % in == 0; }
    std::uint64_t number() {
        static constexpr std::uint64_t some[] = {0, 1, 2, 5, 100, 1000, UINT32_MAX, UINT64_MAX};
        return rarely(2) ? some[random_() % std::size(some)] : random_() % 50;
    }
    std::uint32_t option() { return std::uint32_t(random_() % 24); }

    pf_text text() {
        if (rarely(50)) return {nullptr, random_() % 3};
        if (rarely(200)) return {reinterpret_cast<const std::uint8_t *>("x"), SIZE_MAX};
        const std::string &chosen = texts_[random_() % texts_.size()];
        return playfield::detail::text(chosen);
    }

    template <class T> T *place(T *there) { return rarely(50) ? nullptr : there; }
    std::uint64_t *request() { return place(&request_); }

    std::uint64_t id(Kind kind) {
        if (rarely(30)) kind = Kind(random_() % kinds);
        auto &ids = ids_[kind];
        std::uint64_t chosen = ids.empty() ? 0 : ids[random_() % ids.size()];
        if (rarely(30)) chosen ^= std::uint64_t(1) << random_() % 64;
        return chosen;
    }
    void note(Kind kind, std::uint64_t id) {
        if (id == 0) return;
        auto &ids = ids_[kind];
        // Some stay that are freed.
        if (ids.size() >= 12) ids.erase(ids.begin() + std::ptrdiff_t(random_() % ids.size()));
        ids.push_back(id);
    }

    pf_value value() {
        if (values_.empty()) return {};
        pf_value chosen = values_[random_() % values_.size()];
        if (rarely(20)) chosen.tree = id(tree);
        if (rarely(50)) chosen.node ^= random_() % 64;
        if (rarely(50)) chosen.check ^= 1;
        return chosen;
    }
    void note(pf_value value) {
        if (values_.size() >= 50) values_.erase(values_.begin() + std::ptrdiff_t(random_() % 50));
        values_.push_back(value);
    }
    void keep(pf_tree made, pf_value root) {
        if (made.id == 0) return;
        if (ids_[tree].size() >= 12) (void)pf_tree_free({ids_[tree][random_() % 12]});
        note(tree, made.id);
        note(root);
    }

    pf_code make_client() {
        if (ids_[client].size() >= 8) return free_client(true);
        pf_client made{};
        pf_code code = pf_client_new(text(), place(&made));
        note(client, made.id);
        // Most are of use.
        if (made.id != 0 && flag()) (void)pf_client_connect(made);
        return code;
    }

    pf_code free_client(bool really) {
        if (!really) return PF_CODE_OK;
        std::uint64_t chosen = id(client);
        pf_code code = pf_client_free({chosen});
        if (code == PF_CODE_OK && flag()) std::erase(ids_[client], chosen);
        return code;
    }

    pf_code next() {
        if (rarely(2)) {
            std::array<pf_event, 5> events{};
            std::size_t count = 0;
            pf_code code = pf_client_next_many({id(client)}, 0, place(events.data()),
                                               random_() % (events.size() + 1), place(&count));
            CHECK(count <= events.size());
            for (const pf_event &event : std::span(events.data(), count)) note(event);
            return code;
        }
        pf_event event{};
        pf_code code = pf_client_next({id(client)}, rarely(16) ? 1 : 0, place(&event));
        note(event);
        return code;
    }

    void note(const pf_event &event) {
        for (pf_text text : {event.name, event.text, event.reason, event.said, event.bytes}) touch(text);
        if (event.request != 0) request_ = event.request;
        for (pf_value value : {event.value, event.old}) {
            if (value.tree != 0) note(value);
        }
        note(room, event.room.id);
        note(channel, event.channel.id);
        note(device, event.device.id);
        if (event.kind == PF_EVENT_KIND_COMMAND) command_ = event.number;
    }

    pf_code of_room() {
        pf_room of{id(room)};
        switch (random_() % 11) {
        case 0: {
            pf_value root{};
            pf_code code = pf_room_state(of, place(&root));
            if (root.tree != 0) note(root);
            return code;
        }
        case 1: {
            pf_room_info info{};
            pf_code code = pf_room_get_info(of, place(&info));
            for (pf_text text : {info.id, info.room_type, info.key}) touch(text);
            // Others may join it.
            if (info.id.length > 0) texts_[1] = playfield::detail::view(info.id);
            pf_value joined{};
            pf_code found = pf_room_joined(of, place(&joined));
            if (joined.tree != 0) note(joined);
            return code == PF_CODE_OK ? found : code;
        }
        case 2: return pf_room_send(of, text(), text());
        case 3: return pf_room_request(of, text(), text(), request());
        case 4: return pf_room_watch(of, text(), request());
        case 5: return pf_room_unwatch(of, number());
        case 6: return rarely(5) ? pf_room_leave(of, request()) : PF_CODE_OK;
        case 7: return pf_room_send_packed(of, text(), text());
        case 8: return pf_room_request_packed(of, text(), text(), request());
        case 9: return pf_room_set_packed(of, text(), flag());
        default: return rarely(5) ? pf_room_free(of) : PF_CODE_OK;
        }
    }

    pf_code of_channel() {
        pf_channel of{id(channel)};
        std::uint64_t epoch = 0, offset = 0;
        return rarely(5) ? pf_channel_free(of) : pf_channel_position(of, place(&epoch), place(&offset));
    }

    pf_code of_device() {
        pf_device of{id(device)};
        switch (random_() % 6) {
        case 0: {
            pf_device_info info{};
            pf_code code = pf_device_get_info(of, place(&info));
            touch(info.id);
            return code;
        }
        case 1: return pf_device_report(of, text(), flag(), request());
        case 2: return pf_device_report_unconfirmed(of, text(), flag());
        case 3: return pf_device_answer(of, flag() ? command_ : number(), text(), flag());
        case 4: return pf_device_refuse(of, flag() ? command_ : number(), text());
        default: return rarely(5) ? pf_device_free(of) : PF_CODE_OK;
        }
    }

    pf_code of_value() {
        pf_value of = value(), found{};
        pf_text read{};
        bool is = false;
        std::int64_t i64 = 0;
        std::uint64_t u64 = 0;
        double f64 = 0;
        pf_code code = PF_CODE_OK;
        switch (random_() % 12) {
        case 0: code = pf_value_get(of, text(), place(&found)); break;
        case 1: code = pf_value_member(of, text(), place(&found)); break;
        case 2: {
            std::array<pf_entry, 4> entries{};
            std::size_t written = 0;
            code = pf_value_entries(of, random_() % 3, place(entries.data()),
                                    random_() % (entries.size() + 1), place(&written));
            CHECK(written <= entries.size());
            for (const pf_entry &entry : entries) {
                touch(entry.key);
                if (entry.value.tree != 0) note(entry.value);
            }
            break;
        }
        case 3: code = pf_value_bool(of, place(&is)); break;
        case 4: code = pf_value_i64(of, place(&i64)); break;
        case 5: code = pf_value_u64(of, place(&u64)); break;
        case 6: code = pf_value_f64(of, place(&f64)); break;
        case 7: code = pf_value_text(of, place(&read)); break;
        case 8: code = pf_value_bytes(of, place(&read)); break;
        case 9: code = pf_value_json(of, place(&read)); break;
        case 10: code = pf_value_equal(of, value(), place(&is)); break;
        default:
            CHECK(pf_value_kind(of) <= PF_KIND_MAP);
            (void)pf_value_size(of);
            break;
        }
        touch(read);
        if (found.tree != 0) note(found);
        return code;
    }

    std::mt19937_64 random_;
    std::vector<std::string> texts_;
    std::array<std::vector<std::uint64_t>, kinds> ids_;
    std::vector<pf_value> values_;
    std::uint64_t request_ = 0, command_ = 0;
};

} // namespace

int main(int count, char **arguments) {
    auto time = std::chrono::seconds(count > 1 ? std::stoi(arguments[1]) : 0);
    std::uint64_t seed = count > 2 ? std::stoull(arguments[2]) : 1;
    test::Node node;
    auto end = std::chrono::steady_clock::now() + time;
    std::uint64_t made = 0;
    do {
        std::cout << "seed " << seed << std::endl;
        Calls calls(node, seed++);
        for (int i = 0; i < 5000; ++i) calls.call();
        made += 5000;
        // They are of use: most functions have succeeded, and failed in most ways.
        if (time.count() == 0) {
            for (pf_code code : {PF_CODE_OK, PF_CODE_NULL, PF_CODE_HANDLE, PF_CODE_FREED,
                                 PF_CODE_ARGUMENT, PF_CODE_USAGE, PF_CODE_NOT_FOUND, PF_CODE_TYPE,
                                 PF_CODE_STALE}) {
                CHECK(calls.codes[code] > 0);
            }
        }
    } while (std::chrono::steady_clock::now() < end);
    std::cout << made << " calls, " << checksum << std::endl;
}
