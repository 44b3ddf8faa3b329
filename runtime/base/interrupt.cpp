#include "runtime/base/interrupt.hpp"

#include <csignal>

#include <unistd.h>

#include "runtime/base/error.hpp"

namespace cudp {
namespace {

// A signal handler reaches nothing but static storage.
volatile std::sig_atomic_t stop_requested = 0;

void request_stop(int) { stop_requested = 1; }

volatile std::sig_atomic_t ends_on_announcement = 0;

void end_now(int) { ::_exit(static_cast<int>(Exit::again)); }

}  // namespace

void end_on_announcement() {
  ends_on_announcement = 1;
  (void)std::signal(SIGUSR1, end_now);
}

void hear_no_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) (void)std::signal(signal, SIG_IGN);
}

InterruptWatch::InterruptWatch() {
  stop_requested = 0;
  struct sigaction action {};
  action.sa_handler = request_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGUSR1, &action, nullptr);
}

InterruptWatch::~InterruptWatch() {
  (void)std::signal(SIGINT, SIG_DFL);
  (void)std::signal(SIGTERM, SIG_DFL);
  (void)std::signal(SIGUSR1, ends_on_announcement != 0 ? end_now : SIG_DFL);
}

bool InterruptWatch::requested() const { return stop_requested != 0; }

}  // namespace cudp
