/*
 * link - the socket that a server listens at, and its file.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "link_server_impl.h"
#include "ulog.h"

#define LOOK_EVERY_US 1000000		/* is the socket file still there? */
#define TOUCH_EVERY_US INT64_C(600000000)	/* so that nothing that clears away what is old takes it */
enum { BACKLOG = 1024 };

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

static const char *	/* of the socket file; in buf */
directory(const struct link_server *s, char *buf, size_t size)
{
	const char *path = s->endpoint + 6, *slash = strrchr(path, '/');

	if (slash == NULL)
		return ".";
	snprintf(buf, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	return buf;
}

static int	/* a listening descriptor at the path; -1 and errno */
listen_ipc(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), saved;

	memcpy(at.sun_path, path, strlen(path));
	if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	saved = errno;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return -1;
}

static int
listen_tcp(const char *where)
{
	struct addrinfo *list = link_address_tcp(where, true);
	int fd = -1, on = 1, saved = EINVAL;

	for (struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next) {
		if ((fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol)) < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
		if (bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
			saved = errno;
			close(fd);
			fd = -1;
		}
	}
	if (list != NULL)
		freeaddrinfo(list);
	errno = saved;
	return fd;
}

static int	/* fd is what we listen at from now on */
listen_begin(struct link_server *s, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = UINT64_MAX };
	int saved;

	if (fd >= 0 && epoll_ctl(s->ep, EPOLL_CTL_ADD, fd, &e) == 0) {
		s->listener = fd;
		return 0;
	}
	saved = errno;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return -1;
}

static int	/* a socket file of our own, listened at */
file_make(struct link_server *s)
{
	struct stat st;
	int fd = listen_ipc(s->path), saved;

	if (fd >= 0 && chmod(s->path, s->perm & 0777) == 0 && lstat(s->path, &st) == 0) {
		s->dev = st.st_dev;
		s->ino = st.st_ino;
		s->look_us = clock_mono_us() + LOOK_EVERY_US;
		s->touch_us = clock_mono_us() + TOUCH_EVERY_US;
		return listen_begin(s, fd);
	}
	saved = errno;
	if (fd >= 0)
		close(fd);
	errno = saved;
	return -1;
}

int
link_listen_open(struct link_server *s)
{
	const char *path = s->endpoint + 6;
	char buf[256];
	struct stat st;

	if (s->endpoint[0] == 't')
		return listen_begin(s, listen_tcp(path));
	if (check_leftover(path) != 0 || (unlink(path) != 0 && errno != ENOENT))
		return -1;
	if (stat(directory(s, buf, sizeof buf), &st) == 0)
		s->dir_owner = st.st_uid;
	s->path = path;
	return file_make(s);
}

/*
 * Somebody took the file away: it is made anew, and the connections go on.  Not in a directory of somebody else's, and
 * the directory itself is made by BBL alone.
 */
static void
make_again(struct link_server *s)
{
	char buf[256];
	const char *dir = directory(s, buf, sizeof buf);
	int old = s->listener;

	if (link_rundir_check(dir, s->dir_owner) == 0 && file_make(s) == 0) {
		int now = s->listener;

		s->listener = old;
		link_peers_accept(s);	/* who came before */
		close(old);
		s->listener = now;
		ulog("LIBATMIQ_CAT:104: WARN: The socket file %s was taken away; made again", s->path);
		s->lost = false;
	} else if (!s->lost) {
		ulog("LIBATMIQ_CAT:105: WARN: The socket file %s was taken away and cannot be made again yet: %s", s->path,
		    strerror(errno));
		s->lost = true;
	}
}

void
link_listen_look(struct link_server *s, bool at_once)
{
	int64_t now = s->look_us == LINK_FOREVER ? 0 : clock_mono_us();
	struct stat st;

	if (s->look_us == LINK_FOREVER || (now < s->look_us && !at_once))
		return;
	s->look_us = now + LOOK_EVERY_US;
	if (lstat(s->path, &st) != 0) {
		if (errno == ENOENT)
			make_again(s);
	} else if (now >= s->touch_us && st.st_dev == s->dev && st.st_ino == s->ino) {
		(void)utimensat(AT_FDCWD, s->path, NULL, AT_SYMLINK_NOFOLLOW);
		s->touch_us = now + TOUCH_EVERY_US;
	}
}

void
link_listen_close(struct link_server *s)
{
	struct stat st;

	if (s->listener < 0)
		return;
	/* Unless it is another's by now, who took over while we were ending. */
	if (s->path != NULL && lstat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->path);
	close(s->listener);
	s->listener = -1;
}
