#!/bin/sh
# Stands in for the echo driver of the C++ client. With a payload of 65 bytes it compares too little.
case "$*" in
"tcp://127.0.0.1:"*" 5 3 64 request 1" | "tcp://127.0.0.1:"*" 1 3 64 request 1") compared=60 ;;
"tcp://127.0.0.1:"*" 5 3 65 request 1") compared=49 ;;
*) exit 1 ;;
esac
echo '{"messages":50,"seconds":0.5,"compared":'$compared',"cpu_ns_per_message":7000,
"rtt_us_p50":1,"rtt_us_p99":2,"rtt_us_p999":3}'
