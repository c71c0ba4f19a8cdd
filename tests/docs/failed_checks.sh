#!/bin/sh
# failed_checks.sh PROGRAM
# Runs a test of Catch2 that fails, and prints what it says of each check, without paths and counts.
"$1" | sed -n '/^  CHECK(/,/^$/{/./p;}'
