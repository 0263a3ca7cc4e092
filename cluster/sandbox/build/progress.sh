#!/bin/sh
# progress.sh WHAT PACKAGES SECONDS COMMAND...
#
# Runs COMMAND, a `go build -v`, and says on standard error what it does as long
# as there is something to compile or to download: WHAT it builds, how long that
# takes where nothing is cached (up to PACKAGES packages, SECONDS of one core),
# then every few seconds how far it is. What else COMMAND says is passed on, and
# its exit code is this script's. Nothing to compile: not a word.
#
# POSIX sh. PROGRESS_EVERY is the number of seconds between two lines.
what=$1 packages=$2 seconds=$3
shift 3
every=${PROGRESS_EVERY:-5}
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null) || cores=
case $cores in '' | 0 | *[!0-9]*) cores=1 ;; esac

# On a terminal a line replaces the one before.
begin='' end='
'
if [ -t 2 ] && [ "${TERM:-dumb}" != dumb ]; then
  begin=$(printf '\r') end=$(printf '\033[K')
fi

took() {
  if [ "$1" -lt 60 ]; then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi
}

count() { # COUNT WORD
  if [ "$1" = 1 ]; then echo "1 $2"; else echo "$1 $2s"; fi
}

# Both the command and a clock write to one pipe, so that there is a line even
# while a single large package or the linker takes its time.
{
  while sleep "$every" </dev/null >/dev/null 2>&1; do echo ':tick'; done &
  clock=$!
  "$@" 2>&1
  code=$?
  kill "$clock" 2>/dev/null
  echo ":exit $code"
} 2>/dev/null | {
  built=0 fetched=0 told='' open='' since=$(date +%s) code=1

  tell() { # begins with what lies ahead
    if [ -z "$told" ]; then
      told=yes
      printf 'building %s: up to %s packages, about %s min on %s where nothing is cached\n' "$what" "$packages" \
        $((seconds / cores / 60 + 1)) "$(count "$cores" core)" >&2
    fi
  }
  close() { # ends a line that would have been replaced
    [ -z "$open" ] || printf '\n' >&2
    open=''
  }
  line() {
    downloads=''
    [ "$fetched" = 0 ] || downloads="$(count "$fetched" module) downloaded, "
    printf '%sbuilding %s: %s%s, %s%s' "$begin" "$what" "$downloads" "$(count "$built" package)" \
      "$(took $(($(date +%s) - since)))" "$end" >&2
    open=$begin
  }

  while IFS= read -r said; do
    case $said in
    :tick)
      [ $((built + fetched)) = 0 ] || { tell && line; }
      ;;
    ':exit '*)
      code=${said#:exit }
      break
      ;;
    'go: downloading '*)
      fetched=$((fetched + 1))
      tell
      ;;
    '' | *[!A-Za-z0-9._~/+-]*) # not the path of a package: an error, a warning
      close
      printf '%s\n' "$said" >&2
      ;;
    *)
      built=$((built + 1))
      [ "$built" -lt 10 ] || tell # a change of a few packages takes seconds
      ;;
    esac
  done
  if [ -n "$told" ]; then
    line
    close
  fi
  exit "$code"
}
