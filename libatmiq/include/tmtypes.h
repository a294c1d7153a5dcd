/*
 * tmtypes.h - buffer types of one's own: what a program says of each in tm_typesw[].  See tuxtypes(5).
 */
#ifndef TMTYPES_H
#define TMTYPES_H

#ifdef __GNUC__
#pragma GCC visibility push(default)	/* a program's own switch must be seen from the library */
#endif
#ifdef __cplusplus
extern "C" {
#endif

struct tmtype_sw_t {
	char type[8];		/* all eight may be used; "" ends the switch */
	char subtype[16];	/* "*": any */
	long dfltsize;		/* of a buffer for which less is asked */
	/* Each may be NULL.  -1: failed. */
	int (*initbuf)(char *ptr, long size);
	int (*reinitbuf)(char *ptr, long size);
	int (*uninitbuf)(char *ptr, long size);
	long (*presend)(char *ptr, long len, long size);	/* how much is sent */
	void (*postsend)(char *ptr, long len, long size);
	long (*postrecv)(char *ptr, long len, long size);	/* how much the program is told of */
	long (*encdec)(int op, char *encoded, long encoded_len, char *ptr, long size);
	int (*route)(char *routing, char *service, char *ptr, long len, char *group);
	int (*filter)(char *ptr, long len, char *expression, long expression_len);
	int (*format)(char *ptr, long len, char *text, char *result, long size);
	long (*presend2)(char *ptr, long len, long size, char *to, long to_size, long *flags);
	void (*reserved[9])(void);
};

#define TMENCODE 1	/* encdec */
#define TMDECODE 2

extern struct tmtype_sw_t tm_typesw[];		/* a program's own, when it has one */
struct tmtype_sw_t *_tmtypeswaddr(void);	/* the switch in use; a program may have its own */

/* What switches name for the types of the system. */
int _strinit(char *ptr, long size);
long _strpresend(char *ptr, long len, long size);
long _strencdec(int op, char *encoded, long encoded_len, char *ptr, long size);
int _sfilter(char *ptr, long len, char *expression, long expression_len);
int _sformat(char *ptr, long len, char *text, char *result, long size);

int _finit(char *ptr, long size);
int _freinit(char *ptr, long size);
int _funinit(char *ptr, long size);
long _fpresend(char *ptr, long len, long size);
void _fpostsend(char *ptr, long len, long size);
long _fpostrecv(char *ptr, long len, long size);
long _fencdec(int op, char *encoded, long encoded_len, char *ptr, long size);
int _froute(char *routing, char *service, char *ptr, long len, char *group);
int _ffilter(char *ptr, long len, char *expression, long expression_len);
int _fformat(char *ptr, long len, char *text, char *result, long size);

int _finit32(char *ptr, long size);
int _freinit32(char *ptr, long size);
int _funinit32(char *ptr, long size);
long _fpresend32(char *ptr, long len, long size);
void _fpostsend32(char *ptr, long len, long size);
long _fpostrecv32(char *ptr, long len, long size);
long _fencdec32(int op, char *encoded, long encoded_len, char *ptr, long size);
int _froute32(char *routing, char *service, char *ptr, long len, char *group);
int _ffilter32(char *ptr, long len, char *expression, long expression_len);
int _fformat32(char *ptr, long len, char *text, char *result, long size);

int _vinit(char *ptr, long size);
int _vreinit(char *ptr, long size);
long _vpresend(char *ptr, long len, long size);
long _vencdec(int op, char *encoded, long encoded_len, char *ptr, long size);
int _vroute(char *routing, char *service, char *ptr, long len, char *group);
int _vfilter(char *ptr, long len, char *expression, long expression_len);
int _vformat(char *ptr, long len, char *text, char *result, long size);

int _vinit32(char *ptr, long size);
int _vreinit32(char *ptr, long size);
long _vpresend32(char *ptr, long len, long size);
long _vencdec32(int op, char *encoded, long encoded_len, char *ptr, long size);
int _vroute32(char *routing, char *service, char *ptr, long len, char *group);
int _vfilter32(char *ptr, long len, char *expression, long expression_len);
int _vformat32(char *ptr, long len, char *text, char *result, long size);

#ifdef __cplusplus
}
#endif
#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#endif
