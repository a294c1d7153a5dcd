/*
 * qparse - the words that administrators write: orders, limits, times, identifiers, selection criteria.
 *
 * Both sides use it: qmadmin to answer at once, the owner of a space because nothing else guards its tables.
 *
 * Errors     0; or a positive number of the Q catalogue (1: it has none) and in *text, if not NULL, one malloc'ed line.
 */
#ifndef QPARSE_H
#define QPARSE_H

#include "qspace.h"

/* *text := the formatted line; returns code.  Nothing happens to *text when it is set already. */
int qparse_fail(char **text, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

int qparse_long(const char *s, long min, long max, long *out);	/* decimal, whole string; 0 or -1 */
int qparse_bytes(const char *s,
    int64_t *bytes);	/* size[b|B]: bytes, or pages, which is also meant without a letter; 0 or -1 */

int qparse_space_name(const char *s, char **text);
int qparse_queue_name(const char *s, char **text);
int qparse_order(const char *s, uint8_t order[4], char **text);
int qparse_out_of_order(const char *s, bool *top, bool *msgid, char **text);
int qparse_retry_delay(const char *s, long *out, char **text);
/* high and low with their units, and the command.  A low limit without a unit has the high one's. */
int qparse_threshold(const char *high, const char *low, const char *cmd, const char *units, struct threshold *out,
    char **text);
int qparse_np_threshold(const char *s, struct threshold *out, char **text);	/* high,low,command */
int qparse_expiration(const char *s, int64_t *seconds, char **text);		/* +seconds, none: -1 */
int qparse_policy(const char *s, bool *nonpersistent, char **text);		/* persist, nonpersist */

/* +seconds from now, or YY[MM[DD[hh[mm[ss]]]]] in local time. */
int qparse_time(const char *s, int64_t now_us, int64_t *us);	/* 0 or -1 */
int qparse_id(const char *s,
    uint8_t id[TMMSGIDLEN]);		/* \hh for bytes that do not print; zero padded; 0 or -1 */
void qformat_id(const uint8_t id[TMMSGIDLEN], char out[3 * TMMSGIDLEN + 1]);	/* trailing zero bytes are left out */
void qformat_order(const uint8_t order[4], char *out, size_t size);
void qformat_limit(long value, char unit, char *out, size_t size);

/* What qscan selects.  Keys of the record: time, priority, msgid, corrid, delivery, expiry. */
struct qcriteria {
	bool by_time, by_priority, by_msgid, by_corrid, by_delivery, by_expiry;
	int64_t time[2], expiry[2];	/* from, to: inclusive */
	long priority[2];
	uint8_t msgid[TMMSGIDLEN], corrid[TMCORRIDLEN];
	bool persistent;
};
int qcriteria_parse(const struct record *r, int64_t now_us, struct qcriteria *out, char **text);
bool qcriteria_match(const struct qcriteria *c, const struct qmsg *m);

#endif
