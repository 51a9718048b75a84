#!/bin/busybox sh
# The first process of a guest: makes the place habitable, then does what the host says on the port named "suiro" until the host
# hangs up; then the machine is off. Request: "<number> <seconds> <command>" on one line. Answer: "<number> <status> <length>" on one
# line, then so many bytes of output. The answer numbered 0 says that the guest is ready.
export PATH=/bin
/bin/busybox mkdir -p /proc /sys /dev /tmp /run
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
for module in $(cat /etc/modules); do modprobe "$module"; done
ip link set lo up

# The driver makes its ports after it was loaded.
until [ -e /dev/vport0p1 ]; do usleep 1000; done
exec 3<>/dev/vport0p1

answer() { # number, status; the output is in /tmp/output
  echo "$1 $2 $(wc -c </tmp/output)" >&3
  cat /tmp/output >&3
}

uname -r >/tmp/output
answer 0 0
while read -r number seconds command <&3; do
  # The host says nothing while it waits for an answer: what ends this is that it has hung up.
  { read -r _ <&3; poweroff -f; } &
  # busybox has an `ip` of its own, which its shell prefers.
  timeout -s KILL "$seconds" sh -c "ip() { /bin/ip \"\$@\"; }; $command" >/tmp/output 2>&1 </dev/null 3>&-
  status=$?
  kill $! && wait $!
  answer "$number" $status
done
poweroff -f
