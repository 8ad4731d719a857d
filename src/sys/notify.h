/*
 * notify: tells the service manager how far this program is (systemd's sd_notify protocol).
 *
 * One datagram to the socket that $NOTIFY_SOCKET names; without one nothing happens. Nothing hangs
 * on it: a datagram that can't be sent is dropped, and the manager's own timeout speaks.
 * Source    sd_notify(3): READY=1, STOPPING=1, STATUS=text.
 */
#pragma once

/* `state` is one or several lines, such as "READY=1\nSTATUS=serving". */
void notify_send(const char *state);
