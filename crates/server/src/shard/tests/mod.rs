//! Tests of shards without sockets, in simulated time.

#[path = "../../../tests/common/room.rs"]
mod room;
#[path = "../../../tests/common/speech.rs"]
mod speech;

mod authentication;
mod catching_up;
mod channel_histories;
mod channels;
mod closing;
mod conversation;
mod credit;
mod cuts;
mod deflated;
mod device_services;
mod devices;
mod entering;
mod forgetting;
mod gadget;
mod http;
mod journal;
mod law_frozen;
mod law_links;
mod law_room;
mod law_seat;
mod laws;
mod life;
mod life_room;
mod limits;
mod listener;
mod lobby;
mod names;
mod operating;
mod overload;
mod passed_on;
mod placed;
mod rates;
mod refusals;
mod remote;
mod resume;
mod rooms;
mod round_trips;
mod service_websockets;
mod services;
mod share;
mod sizes;
mod splits;
mod strangers;
mod switching;
mod tickets;
mod timing;
mod trickles;
mod user_laws;
mod users;
mod wanderer;
mod world;
