#include "runtime/base/interrupt.hpp"

#include <csignal>

namespace cudp {
namespace {

// A signal handler reaches nothing but static storage.
volatile std::sig_atomic_t stop_requested = 0;

void request_stop(int) { stop_requested = 1; }

}  // namespace

InterruptWatch::InterruptWatch() {
  stop_requested = 0;
  struct sigaction action {};
  action.sa_handler = request_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

InterruptWatch::~InterruptWatch() {
  (void)std::signal(SIGINT, SIG_DFL);
  (void)std::signal(SIGTERM, SIG_DFL);
}

bool InterruptWatch::requested() const { return stop_requested != 0; }

}  // namespace cudp
