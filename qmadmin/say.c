/*
 * What the administrator reads: answers, through the pager where that makes sense; troubles on stderr.
 */
#include <stdarg.h>

#include "interrupt.h"
#include "session.h"
#include "ulog.h"

static void
trouble(struct session *s, int number, const char *level, const char *fmt, va_list ap)
{
	char text[2048];

	fflush(s->con.out);		/* so that the two come in order where they go to one place */
	vsnprintf(text, sizeof text, fmt, ap);
	if (number > 1) {
		fprintf(stderr, "QM_CAT:%d: %s: %s\n", number, level, text);
		if (*level != 'I')	/* an answer, not a trouble */
			ulog("QM_CAT:%d: %s: %s", number, level, text);
	} else
		fprintf(stderr, "%s: %s\n", level, text);
}

#define TROUBLE(function, level)						\
void										\
function(struct session *s, int number, const char *fmt, ...)			\
{										\
	va_list ap;								\
										\
	va_start(ap, fmt);							\
	trouble(s, number, level, fmt, ap);					\
	va_end(ap);								\
}
TROUBLE(say_error, "ERROR")
TROUBLE(say_warning, "WARN")
TROUBLE(say_info, "INFO")

void
say_trouble(void *session, const char *text)
{
	say_error(session, 0, "%s", text);
}

void
say(struct session *s, const char *fmt, ...)
{
	va_list ap;

	if (interrupt_came())
		return;
	va_start(ap, fmt);
	vfprintf(s->con.out, fmt, ap);
	va_end(ap);
}

void
say_verbose(struct session *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->con.verbose || interrupt_came())
		return;
	va_start(ap, fmt);
	vfprintf(s->con.out, fmt, ap);
	va_end(ap);
}
