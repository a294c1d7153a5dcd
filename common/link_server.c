/*
 * link - the server's end: a ROUTER socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "link_impl.h"
#include "ulog.h"

#define LINGER_MS 500		/* for replies under way, at the close */
#define COMPLAIN_EVERY_US 1000000
#define LOOK_EVERY_US 1000000		/* is the socket file still there? */
#define TOUCH_EVERY_US INT64_C(600000000)	/* so that nothing that clears away what is old takes it */

struct link_server {
	void *ctx, *socket;
	int fd;
	unsigned generation;
	struct link_debts *debts;
	int64_t complained_us;	/* when the last line about nonsense was written */
	unsigned long unsaid;	/* dropped since without a line */
	char endpoint[256];
	const char *path;	/* of the socket file, in endpoint; NULL: none, or not bound yet */
	dev_t dev;		/* and which file it was */
	ino_t ino;
	unsigned perm;
	uid_t dir_owner;	/* of the directory it was made in */
	int64_t look_us, touch_us;	/* when that is due; look_us LINK_FOREVER: there is no file */
	bool lost;		/* the file is gone and could not be made again yet: was said */
};

/* --- opening and closing --- */

static int
set_options(void *socket)
{
	int64_t max = LINK_MAX_MESSAGE;

	if (link_set_int(socket, ZMQ_ROUTER_MANDATORY, 1) != 0 || link_set_int(socket, ZMQ_SNDHWM, LINK_HWM) != 0 ||
	    link_set_int(socket, ZMQ_RCVHWM, LINK_HWM) != 0 || link_set_int(socket, ZMQ_LINGER, LINGER_MS) != 0 ||
	    link_set_int(socket, ZMQ_BACKLOG, 1024) != 0)
		return -1;
	if (zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max, sizeof max) != 0)
		return -1;
	/* No heartbeats from here: a client answers only while it waits for something.  One whose process ends, ends its
	 * connection; over a network the kernel asks. */
	return link_set_int(socket, ZMQ_TCP_KEEPALIVE, 1);
}

static bool	/* A zombie listens no more. */
process_lives(pid_t pid)
{
	char path[64], text[512], *state;
	FILE *f;
	size_t n;

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	if ((f = fopen(path, "re")) == NULL)
		return false;
	n = fread(text, 1, sizeof text - 1, f);
	fclose(f);
	text[n] = '\0';
	return (state = strrchr(text, ')')) != NULL && strlen(state) > 2 && state[2] != 'Z';
}

/* Who made the socket, if that process lives: a child of it that did not exec may hold the socket, and hears nothing. */
static pid_t
listener(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct ucred who = { .pid = 0 };
	socklen_t size = sizeof who;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	if (fd < 0)
		return 0;
	if (connect(fd, (struct sockaddr *)&a, sizeof a) != 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
		who.pid = 0;
	close(fd);
	return who.pid > 0 && process_lives(who.pid) ? who.pid : 0;
}

static int	/* Only a socket file that nobody listens at may be replaced. */
check_leftover(const char *path)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		errno = EEXIST;
		return -1;
	}
	if (listener(path) != 0) {
		errno = EADDRINUSE;
		return -1;
	}
	return 0;
}

static int
own_file(struct link_server *s)
{
	struct stat st;

	s->path = s->endpoint + 6;
	if (chmod(s->path, s->perm & 0777) != 0 || lstat(s->path, &st) != 0)
		return -1;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	s->look_us = clock_mono_us() + LOOK_EVERY_US;
	s->touch_us = clock_mono_us() + TOUCH_EVERY_US;
	return 0;
}

static const char *	/* of the socket file; in buf */
directory(const struct link_server *s, char *buf, size_t size)
{
	const char *path = s->endpoint + 6, *slash = strrchr(path, '/');

	if (slash == NULL)
		return ".";
	snprintf(buf, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return buf;
}

/*
 * Somebody took the file away: it is made anew, beside the connections that go on.  The old listener stays, for taking
 * it down would take the new file with it.  Not in a directory of somebody else's, and the directory itself is made by
 * BBL alone.
 */
static void
bind_again(struct link_server *s)
{
	char buf[256];
	const char *dir = directory(s, buf, sizeof buf);

	if (link_rundir_check(dir, s->dir_owner) == 0 && zmq_bind(s->socket, s->endpoint) == 0 && own_file(s) == 0) {
		ulog("LIBATMIQ_CAT:104: WARN: The socket file %s was taken away; made again", s->path);
		s->lost = false;
	} else if (!s->lost) {
		ulog("LIBATMIQ_CAT:105: WARN: The socket file %s was taken away and cannot be made again yet: %s", s->path,
		    strerror(errno));
		s->lost = true;
	}
}

void
link_server_look(struct link_server *s, bool at_once)
{
	int64_t now = s->look_us == LINK_FOREVER ? 0 : clock_mono_us();
	struct stat st;

	if (s->look_us == LINK_FOREVER || (now < s->look_us && !at_once) || s->generation != link_generation())
		return;
	s->look_us = now + LOOK_EVERY_US;
	if (lstat(s->path, &st) != 0) {
		if (errno == ENOENT)
			bind_again(s);
	} else if (now >= s->touch_us && st.st_dev == s->dev && st.st_ino == s->ino) {
		(void)utimensat(AT_FDCWD, s->path, NULL, AT_SYMLINK_NOFOLLOW);
		s->touch_us = now + TOUCH_EVERY_US;
	}
}

int64_t
link_server_next_look(const struct link_server *s)
{
	return s->look_us;
}

static void	/* unless it is another's by now, who took over while we were ending */
remove_file(const struct link_server *s)
{
	struct stat st;

	if (s->path != NULL && lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->path);
}

int
link_server_open(const char *endpoint, unsigned perm, struct link_server **out)
{
	struct link_server *s = NULL;
	const char *path = strncmp(endpoint, "ipc://", 6) == 0 && endpoint[6] != '@' ? endpoint + 6 : NULL;
	int saved, rc = LINK_FAIL;
	char buf[256];
	struct stat st;

	*out = NULL;
	if (link_check_path(endpoint) != 0 || (path != NULL && check_leftover(path) != 0))
		goto done;
	if ((s = calloc(1, sizeof *s)) == NULL || (s->debts = link_debts_new()) == NULL)
		goto done;
	snprintf(s->endpoint, sizeof s->endpoint, "%s", endpoint);
	s->generation = link_generation();
	s->perm = perm;
	s->look_us = LINK_FOREVER;
	if (path != NULL && stat(directory(s, buf, sizeof buf), &st) == 0)
		s->dir_owner = st.st_uid;
	if ((s->ctx = link_context_new()) == NULL || (s->socket = zmq_socket(s->ctx, ZMQ_ROUTER)) == NULL)
		goto done;
	if (set_options(s->socket) != 0 || (s->fd = link_socket_fd(s->socket)) < 0)
		goto done;
	if (zmq_bind(s->socket, endpoint) != 0)
		goto done;
	if (path != NULL && own_file(s) != 0)
		goto done;
	*out = s;
	s = NULL;
	rc = LINK_OK;
done:
	saved = errno;
	link_server_close(s);
	errno = saved;
	return rc;
}

void
link_server_close(struct link_server *s)
{
	if (s == NULL)
		return;
	if (s->generation == link_generation()) {
		remove_file(s);
		if (s->socket != NULL)
			zmq_close(s->socket);
		while (s->ctx != NULL && zmq_ctx_term(s->ctx) != 0 && errno == EINTR)
			;	/* waits for LINGER_MS at most */
	}
	link_debts_free(s->debts);
	free(s);
}

/* --- receiving --- */

static void	/* One line a second at most, or a hostile peer fills the disk. */
complain(struct link_server *s, const struct link_msg *m, int parts)
{
	int64_t now = clock_mono_us();
	char who[128];

	if (s->complained_us != 0 && now - s->complained_us < COMPLAIN_EVERY_US) {
		s->unsaid++;
		return;
	}
	link_msg_peer_name(m, who, sizeof who);
	ulog("LIBATMIQ_CAT:101: WARN: Dropped a message of %d frames from %s on %s: a request is a header and at most "
	    "a body (%lu more dropped since the last such line)", parts, who, s->endpoint, s->unsaid);
	s->complained_us = now;
	s->unsaid = 0;
}

static int	/* the peer's name frame */
recv_peer(struct link_server *s, struct link_peer *peer)
{
	int n = zmq_recv(s->socket, peer->id, sizeof peer->id, ZMQ_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? LINK_TIMEOUT : LINK_FAIL;
	peer->n = (uint8_t)n;
	return LINK_OK;
}

static int	/* the next good message, without waiting */
take(struct link_server *s, struct link_msg *m)
{
	int rc, parts;

	for (;;) {
		if ((rc = recv_peer(s, &m->peer)) != LINK_OK)
			return rc;
		if ((rc = link_frames_recv(s->socket, m, &parts)) == LINK_OK && m->peer.n <= sizeof m->peer.id)
			return LINK_OK;
		if (rc == LINK_OK || (rc == LINK_FAIL && errno == EPROTO))
			complain(s, m, parts);
		link_msg_done(m);
	}
}

int
link_server_recv(struct link_server *s, struct link_msg *m, int64_t deadline_us, int wake_fd)
{
	struct pollfd fds[2] = { { .fd = s->fd } };
	int rc;

	link_frames(m)->live = 0;
	do {
		link_server_look(s, false);
		rc = take(s, m);
	} while (rc == LINK_TIMEOUT && (rc = link_pause(fds, 1, deadline_us, s->look_us, wake_fd)) == LINK_OK);
	if (rc != LINK_OK)
		link_msg_done(m);
	return rc;
}

/* --- answering --- */

static int
send_failed(void)
{
	return errno == EAGAIN || errno == EHOSTUNREACH ? LINK_GONE : LINK_FAIL;
}

int
link_server_send(struct link_server *s, const struct link_peer *to, const void *head, size_t head_len,
    const struct link_body *body)
{
	zmq_msg_t frame;
	int rc;

	if (body != NULL) {
		if ((rc = link_body_frame(&frame, body, s->debts, to)) != LINK_OK)
			return rc;
	}
	/* Only the first frame can be refused; what follows it goes where it went. */
	if (zmq_send(s->socket, to->id, to->n, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ||
	    zmq_send(s->socket, head, head_len, (body != NULL ? ZMQ_SNDMORE : 0) | ZMQ_DONTWAIT) < 0 ||
	    (body != NULL && zmq_msg_send(&frame, s->socket, ZMQ_DONTWAIT) < 0)) {
		rc = send_failed();
		if (body != NULL)
			zmq_msg_close(&frame);
		return rc;
	}
	return LINK_OK;
}

/* --- for link_wait() --- */

int
link_server_fd(const struct link_server *s)
{
	return s->fd;
}

bool
link_server_ready(struct link_server *s)
{
	int events = 0;
	size_t size = sizeof events;

	return zmq_getsockopt(s->socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN) != 0;
}
