/* The smallest client in C: counts in the showcase's counter. */

#include <stdio.h>

#include <playfield.h>

static int failed(void) {
    pf_text message = pf_error_message();
    fprintf(stderr, "%.*s\n", (int)message.length, (const char *)message.data);
    return 1;
}

int main(int count, char **arguments) {
    pf_client client;
    pf_room room = {0};
    uint64_t request;
    if (pf_client_new(pf_str(count > 1 ? arguments[1] : "tcp://127.0.0.1:7350"), &client)) {
        return failed();
    }
    pf_client_set_text(client, PF_OPTION_NAME, pf_str(count > 2 ? arguments[2] : "someone"));
    if (pf_client_connect(client)) return failed();

    for (;;) {
        pf_event event;
        if (pf_client_next(client, 10000, &event)) return failed();
        if (event.code || event.kind == PF_EVENT_KIND_NONE) {
            fprintf(stderr, "%.*s\n", (int)event.text.length, (const char *)event.text.data);
            return 1;
        }
        switch (event.kind) {
        case PF_EVENT_KIND_CONNECTED:
            if (pf_client_join_or_create(client, pf_str("counter"), pf_str(0), pf_str(0), &request)) {
                return failed();
            }
            break;
        case PF_EVENT_KIND_JOINED:
            room = event.room;
            if (pf_room_request(room, pf_str("Add"), pf_str("2"), &request)) return failed();
            break;
        case PF_EVENT_KIND_REPLY: {
            int64_t value;
            if (pf_value_i64(event.value, &value)) return failed();
            printf("after adding 2 it is %lld\n", (long long)value);
            pf_client_free(client);
            pf_shut_down();
            return 0;
        }
        default:
            break;
        }
    }
}
