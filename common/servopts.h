/*
 * servopts - the options of servers that come before --, as for getopt(): what BBL adds (C g i u U m), then those of
 * servopts(5).  Each server reads them for itself, for each does something else with them; which there are is said here.
 */
#ifndef SERVOPTS_H
#define SERVOPTS_H

#define SERVOPTS "+:C:g:i:u:U:m:As:e:o:rthl:n:p:vPSRG"

#endif
