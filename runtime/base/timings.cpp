#include "runtime/base/timings.hpp"

#include <algorithm>
#include <ctime>

#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>

namespace cudp {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double seconds_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

/// Returns the processor time that the process and its ended child processes have used [seconds].
double process_seconds() {
  double all = 0.0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    if (::getrusage(who, &used) == 0) all += seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
  }
  return all;
}

double thread_seconds() {
  timespec t{};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return 0.0;
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Returns the index of the phase with this name in `all`; appends a phase of this name if there is
/// none.
std::size_t index_of(std::vector<Timings::Phase>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &Timings::Phase::name);
  if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
  all.push_back({.name = std::string(name), .spent = {}});
  return all.size() - 1;
}

void add(Timings::Duration& sum, Timings::Duration more) {
  sum.wall += more.wall;
  sum.cpu += more.cpu;
}

std::string row(std::string_view name, Timings::Duration spent) {
  return fmt::format("  {:<36} {:8.3f} {:8.3f}", name, spent.wall, spent.cpu);
}

}  // namespace

Timings::Timings() : cpu_(process_seconds()) {
  phases_.push_back({.name = "program start", .spent = {.wall = cpu_, .cpu = cpu_}});
}

Timings::Duration Timings::spent_in_phase() const {
  return {.wall = seconds_since(wall_), .cpu = process_seconds() - cpu_};
}

void Timings::enter(std::string_view phase) {
  const Duration spent = spent_in_phase();
  add(phases_[current_].spent, spent);
  current_ = index_of(phases_, phase);
  wall_ = Clock::now();
  cpu_ += spent.cpu;
}

void Timings::add_beside(std::string_view work, Duration spent) {
  const std::lock_guard lock(mutex_);
  add(beside_[index_of(beside_, work)].spent, spent);
}

std::vector<Timings::Phase> Timings::phases() const {
  std::vector<Phase> all = phases_;
  add(all[current_].spent, spent_in_phase());
  return all;
}

std::vector<Timings::Phase> Timings::beside() const {
  const std::lock_guard lock(mutex_);
  return beside_;
}

ThreadClock::ThreadClock() : cpu_(thread_seconds()) {}

Timings::Duration ThreadClock::spent() const {
  return {.wall = seconds_since(wall_), .cpu = thread_seconds() - cpu_};
}

std::vector<std::string> timings_table(const Timings& timings) {
  std::vector<std::string> lines = {
      fmt::format("{:<38} {:>8} {:>8}", "seconds of each phase", "wall", "cpu")};
  Timings::Duration sum;
  for (const Timings::Phase& phase : timings.phases()) {
    lines.push_back(row(phase.name, phase.spent));
    add(sum, phase.spent);
  }
  lines.push_back(row("all of it", sum));
  for (const Timings::Phase& work : timings.beside())
    lines.push_back(row("meanwhile: " + work.name, work.spent));
  return lines;
}

}  // namespace cudp
