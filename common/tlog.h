/*
 * tlog - the transaction log of a machine as administrators know it: TLOGDEVICE, a device file (device.h) with a table of
 * kind "tlog" that crlog makes and dslog removes.
 */
#ifndef TLOG_H
#define TLOG_H
int tlog_create(const char *device, const char *name, long pages, char **why);	/* 0 or a DEVE code */
int tlog_destroy(const char *device, const char *name, char **why);
int tlog_exists(const char *device, const char *name);	/* 1, 0, or a DEVE code */
#endif
