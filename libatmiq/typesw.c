/*
 * typesw - the switch of buffer types: the program's own tm_typesw[], and behind it that of the system.
 *
 * A program's switch comes first and takes nothing away: a type that it does not name is the system's.
 */
#include <string.h>

#include "impl.h"
#include "typesw.h"
#include "ulog.h"

#pragma weak tm_typesw

#define IS_LATER (-1)		/* FML and VIEW: their functions can be named, the types come with a later version */

/* --- STRING --- */

int
_strinit(char *ptr, long size)
{
	if (size > 0)
		*ptr = '\0';
	return 1;
}

long
_strpresend(char *ptr, long len, long size)
{
	size_t n = strnlen(ptr, (size_t)size);

	(void)len;
	if ((long)n < size)
		return (long)n + 1;
	ulog("LIBTUX_CAT:5011: ERROR: a STRING of %ld bytes has no end", size);
	return -1;
}

long	/* One machine: what is sent is what there is. */
_strencdec(int op, char *encoded, long encoded_len, char *ptr, long size)
{
	long n = op == TMENCODE ? _strpresend(ptr, 0, size) : encoded_len, room = op == TMENCODE ? encoded_len : size;

	if (n < 0 || n > room)
		return -1;
	memcpy(op == TMENCODE ? encoded : ptr, op == TMENCODE ? ptr : encoded, (size_t)n);
	return n;
}

/* --- what nobody asks for before there are events, FML and views --- */

#define NO_INIT(name) int name(char *ptr, long size) { (void)ptr; (void)size; return IS_LATER; }
#define NO_LENGTH(name) long name(char *ptr, long len, long size) { (void)ptr; (void)len; (void)size; return IS_LATER; }
#define NO_POST(name) void name(char *ptr, long len, long size) { (void)ptr; (void)len; (void)size; }
#define NO_ENCDEC(name) \
	long name(int op, char *encoded, long encoded_len, char *ptr, long size) \
	{ (void)op; (void)encoded; (void)encoded_len; (void)ptr; (void)size; return IS_LATER; }
#define NO_ROUTE(name) \
	int name(char *routing, char *service, char *ptr, long len, char *group) \
	{ (void)routing; (void)service; (void)ptr; (void)len; (void)group; return IS_LATER; }
#define NO_FILTER(name) \
	int name(char *ptr, long len, char *expression, long expression_len) \
	{ (void)ptr; (void)len; (void)expression; (void)expression_len; return IS_LATER; }
#define NO_FORMAT(name) \
	int name(char *ptr, long len, char *text, char *result, long size) \
	{ (void)ptr; (void)len; (void)text; (void)result; (void)size; return IS_LATER; }

NO_FILTER(_sfilter)
NO_FORMAT(_sformat)
NO_INIT(_finit) NO_INIT(_freinit) NO_INIT(_funinit) NO_LENGTH(_fpresend) NO_POST(_fpostsend) NO_LENGTH(_fpostrecv)
NO_ENCDEC(_fencdec) NO_ROUTE(_froute) NO_FILTER(_ffilter) NO_FORMAT(_fformat)
NO_INIT(_finit32) NO_INIT(_freinit32) NO_INIT(_funinit32) NO_LENGTH(_fpresend32) NO_POST(_fpostsend32) NO_LENGTH(_fpostrecv32)
NO_ENCDEC(_fencdec32) NO_ROUTE(_froute32) NO_FILTER(_ffilter32) NO_FORMAT(_fformat32)
NO_INIT(_vinit) NO_INIT(_vreinit) NO_LENGTH(_vpresend) NO_ENCDEC(_vencdec) NO_ROUTE(_vroute) NO_FILTER(_vfilter) NO_FORMAT(_vformat)
NO_INIT(_vinit32) NO_INIT(_vreinit32) NO_LENGTH(_vpresend32) NO_ENCDEC(_vencdec32) NO_ROUTE(_vroute32) NO_FILTER(_vfilter32)
NO_FORMAT(_vformat32)

/* --- the system's switch --- */

static int
tpinit_init(char *ptr, long size)
{
	memset(ptr, 0, (size_t)size);
	return 1;
}

static long	/* It is for tpinit() only. */
tpinit_presend(char *ptr, long len, long size)
{
	(void)ptr;
	(void)len;
	(void)size;
	return -1;
}

static struct tmtype_sw_t system_types[] = {
	{ .type = "CARRAY", .subtype = "*" },
	{ .type = "STRING", .subtype = "*", .dfltsize = 512, .initbuf = _strinit, .presend = _strpresend, .encdec = _strencdec,
	    .filter = _sfilter, .format = _sformat },
	{ .type = X_OCTET, .subtype = "*" },
	{ .type = "XML", .subtype = "*" },
	{ .type = "TPINIT", .subtype = "*", .dfltsize = sizeof(TPINIT), .initbuf = tpinit_init, .presend = tpinit_presend },
	{ .type = "" }
};

struct tmtype_sw_t *
_tmtypeswaddr(void)
{
	return tm_typesw != NULL ? tm_typesw : system_types;
}

/* A switch of an old program names types that are not there yet. */
static bool
is_later(const struct tmtype_sw_t *t)
{
	return t->initbuf == _finit || t->initbuf == _finit32 || t->initbuf == _vinit || t->initbuf == _vinit32;
}

/* Best is who names the subtype, then who takes any; without a subtype any of the type will do. */
static const struct tmtype_sw_t *
find_in(const struct tmtype_sw_t *t, const char *type, const char *subtype)
{
	const struct tmtype_sw_t *found = NULL;

	for (; t != NULL && *t->type != '\0'; t++) {
		if (strncmp(t->type, type, sizeof t->type) != 0 || is_later(t))
			continue;
		if (strncmp(t->subtype, subtype, sizeof t->subtype) == 0)
			return t;
		if (t->subtype[0] == '*' && t->subtype[1] == '\0')
			found = t;
		else if (found == NULL && *subtype == '\0')
			found = t;
	}
	return found;
}

const struct tmtype_sw_t *
typesw_find(const char *type, const char *subtype)
{
	const struct tmtype_sw_t *t = find_in(_tmtypeswaddr(), type, subtype);

	return t != NULL ? t : find_in(system_types, type, subtype);
}

bool
typesw_is_systems(const struct tmtype_sw_t *t)
{
	return t->presend == _strpresend || t->presend == tpinit_presend;
}
