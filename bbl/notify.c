#include "notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "link.h"
#include "ulog.h"

static int	/* 0, or -1: no address of the two kinds that there are here */
address_read(struct notify *n, const char *name)
{
	size_t len = strlen(name);

	if ((name[0] != '/' && name[0] != '@') || len < 2 || len >= sizeof n->to.sun_path)
		return -1;
	memset(&n->to, 0, sizeof n->to);
	n->to.sun_family = AF_UNIX;
	memcpy(n->to.sun_path, name, len);
	if (name[0] == '@')
		n->to.sun_path[0] = '\0';
	n->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] == '/'));
	return 0;
}

static int64_t	/* half of what systemd waits for, as it recommends; 0: no sign of life is wanted of us */
watchdog_read(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	long long us = usec != NULL ? strtoll(usec, NULL, 10) : 0;

	if (us <= 0 || (pid != NULL && strtoll(pid, NULL, 10) != (long long)getpid()))
		return 0;
	return us / 2 > 0 ? us / 2 : 1;
}

void
notify_open(struct notify *n)
{
	const char *name = getenv("NOTIFY_SOCKET");

	memset(n, 0, sizeof *n);
	n->fd = -1;
	if (name != NULL && *name != '\0') {
		if (address_read(n, name) != 0)
			ulog("CMDTUX_CAT:1747: WARN: NOTIFY_SOCKET %s is no path and no abstract name; nobody is told that BBL is ready",
			    name);
		else if ((n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) >= 0)
			n->watchdog_us = watchdog_read();
	}
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

void
notify_close(struct notify *n)
{
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
}

void
notify_say(struct notify *n, const char *lines)
{
	ssize_t sent;

	if (n->fd < 0)
		return;
	do
		sent = sendto(n->fd, lines, strlen(lines), MSG_NOSIGNAL, (const struct sockaddr *)&n->to, n->to_len);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		ulog_debug("NOTIFY_SOCKET: %s", strerror(errno));
}

void
notify_tick(struct notify *n)
{
	int64_t now = clock_mono_us();

	if (n->fd < 0 || n->watchdog_us == 0 || now < n->next_us)
		return;
	n->next_us = now + n->watchdog_us;
	notify_say(n, "WATCHDOG=1");
}

int64_t
notify_next_due(const struct notify *n)
{
	return n->fd >= 0 && n->watchdog_us > 0 ? n->next_us : LINK_FOREVER;
}
