#!/bin/sh
# greet.sh [NAME]

# It greets a person.

