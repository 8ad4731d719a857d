/*
 * refusal: what the API refused, said in the words of the command line: "--start: lies in the past"
 * where the API speaks of its field startAt. Pure.
 */
#pragma once

#include "cli/cli.h"

/* Names the option instead of the body's field, when one was given for it. */
void refusal_name_option(const struct cli *cli, struct error *error);
