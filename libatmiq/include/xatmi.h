/*
 * xatmi.h - the X/Open name of a part of atmi.h.
 */
#ifndef XATMI_H
#define XATMI_H
#include "atmi.h"
#endif
