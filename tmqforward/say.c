#include "say.h"

#include <stdarg.h>
#include <stdio.h>

#include "userlog.h"

void
say(const char *fmt, ...)
{
	char text[1200], as_is[] = "%s";
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	userlog(as_is, text);
}
