/*
 * link - messages that were received, and who sent them.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "link_impl.h"

void
link_msg_none(struct link_msg *m)
{
	struct link_frames *f = link_frames(m);

	f->head = f->body = NULL;
	f->who.pid = 0;
	f->who.address.sin6_family = AF_UNSPEC;
	m->peer.n = 0;
	m->head = m->body = NULL;
	m->head_len = m->body_len = 0;
	m->has_body = false;
	m->came_us = 0;
}

void
link_msg_done(struct link_msg *m)
{
	struct link_frames *f = link_frames(m);

	free(f->head);
	free(f->body);
	f->head = f->body = NULL;
	m->head = m->body = NULL;
	m->head_len = m->body_len = 0;
	m->has_body = false;
}

void
link_msg_move(struct link_msg *to, struct link_msg *from)
{
	memcpy(to, from, sizeof *to);
	if (from->head == link_frames(from)->small)
		to->head = link_frames(to)->small;
	link_msg_none(from);
}

void
link_who_name(const struct link_who *who, char *out, size_t size)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)&who->address;
	char host[INET6_ADDRSTRLEN] = "";

	if (who->pid > 0)
		snprintf(out, size, "process %ld of user %ld", (long)who->pid, (long)who->uid);
	else if (who->address.sin6_family == AF_INET && inet_ntop(AF_INET, &four->sin_addr, host, sizeof host) != NULL)
		snprintf(out, size, "%s:%u", host, ntohs(four->sin_port));
	else if (who->address.sin6_family == AF_INET6 &&
	    inet_ntop(AF_INET6, &who->address.sin6_addr, host, sizeof host) != NULL)
		snprintf(out, size, "[%s]:%u", host, ntohs(who->address.sin6_port));
	else
		snprintf(out, size, "an unknown peer");
}

void
link_msg_peer_name(const struct link_msg *m, char *out, size_t size)
{
	link_who_name(&link_frames((struct link_msg *)(uintptr_t)m)->who, out, size);
}

void
link_body_drop(const struct link_body *body)
{
	if (body != NULL && body->release != NULL)
		body->release((void *)(uintptr_t)body->p, body->hint);
}
