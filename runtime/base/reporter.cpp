#include "runtime/base/reporter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/base/files.hpp"
#include "runtime/base/rounded_text.hpp"

namespace cudp {
namespace {

/// Minimum time between two updates of the progress bar.
constexpr auto kRedraw = std::chrono::milliseconds(100);

/// Formats a number with commas between thousands: "48,100".
std::string with_thousands(double x) {
  const std::string digits = fmt::format("{:.0f}", x);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

}  // namespace

int terminal_width(int file) {
  winsize size{};
  if (::ioctl(file, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col > 0 ? size.ws_col : 80;
}

std::string duration_text(double seconds) {
  const auto s = static_cast<long>(std::lround(std::fmax(seconds, 0.0)));
  if (s >= 3600) return fmt::format("{}h {:02}m", s / 3600, s % 3600 / 60);
  if (s >= 60) return fmt::format("{}m {:02}s", s / 60, s % 60);
  return fmt::format("{}s", s);
}

namespace {

std::string bar_of(const Progress& p) {
  constexpr int kBar = 20;
  const double done = p.steps ? static_cast<double>(p.step) / static_cast<double>(p.steps) : 1.0;
  const int filled = static_cast<int>(done * kBar);
  std::string bar(static_cast<std::size_t>(filled), '=');
  if (filled < kBar) bar += '>';
  bar.resize(kBar, ' ');
  return "[" + bar + "] ";
}

std::string progress_of(const Progress& p, const std::string& bar) {
  std::string line = fmt::format("epoch {:.0f}/{:.0f} {}step {}/{}", std::floor(p.epoch),
                                 std::ceil(p.epochs), bar, p.step, p.steps);
  if (p.epsilon) line += "  epsilon " + rounded_up(*p.epsilon, 4);
  if (p.test_accuracy) line += fmt::format("  test {:.2f} %", 100.0 * *p.test_accuracy);
  line += fmt::format("  {} examples/s", with_thousands(p.examples_per_second));
  if (p.step < p.steps) line += "  " + duration_text(p.seconds_left) + " left";
  return line;
}

}  // namespace

std::string progress_text(const Progress& p) { return progress_of(p, ""); }

std::string progress_line(const Progress& p, int width) {
  std::string line = progress_of(p, bar_of(p));
  if (static_cast<int>(line.size()) > width) line.resize(static_cast<std::size_t>(width));
  return line;
}

bool may_colour(int file) {
  const char* const no_colour = std::getenv("NO_COLOR");
  return ::isatty(file) == 1 && (no_colour == nullptr || *no_colour == '\0');
}

std::string json_log_line(const std::string& level, const std::string& message) {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  const nlohmann::ordered_json line{{"time", time.data()}, {"level", level}, {"message", message}};
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Reporter::Reporter(bool quiet, LogForm form)
    : form_(form),
      log_(std::make_shared<spdlog::logger>(
          "cudp", std::make_shared<spdlog::sinks::stderr_color_sink_mt>())),
      quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) == 1) {
  log_->set_pattern(form_ == LogForm::json ? "%v" : "%H:%M:%S %v");
  log_->sinks()[0]->set_level(quiet ? spdlog::level::warn : spdlog::level::info);
}

Reporter::Reporter(Silent) : Reporter(true) { log_->sinks()[0]->set_level(spdlog::level::off); }

Reporter::~Reporter() { clear_bar(); }

void Reporter::keep_log(const std::filesystem::path& file) {
  make_private(file);
  auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
  sink->set_pattern(form_ == LogForm::json ? "%v" : "%Y-%m-%d %H:%M:%S %l: %v");
  file_log_ = std::make_shared<spdlog::logger>("cudp", sink);
  file_log_->flush_on(spdlog::level::info);
}

void Reporter::to_stderr(Level level, const std::string& line) {
  clear_bar();
  const bool warns = level == Level::warning;
  std::string text = line;
  if (form_ == LogForm::json)
    text = json_log_line(warns ? "warning" : "info", line);
  else if (warns)
    text = (may_colour(STDERR_FILENO) ? "\033[1;35mwarning:\033[0m " : "warning: ") + line;
  log_->log(warns ? spdlog::level::warn : spdlog::level::info, text);
}

void Reporter::to_file(Level level, const std::string& line) {
  if (file_log_ == nullptr) return;
  const bool warns = level == Level::warning;
  const char* const name = warns ? "warning" : level == Level::error ? "error" : "info";
  const std::string text = form_ == LogForm::json ? json_log_line(name, line)
                           : warns                ? "warning: " + line
                                                  : line;
  file_log_->log(warns ? spdlog::level::warn : spdlog::level::info, text);
}

void Reporter::info(const std::string& line) {
  to_stderr(Level::info, line);
  to_file(Level::info, line);
}

void Reporter::warn(const std::string& line) {
  to_stderr(Level::warning, line);
  to_file(Level::warning, line);
}

void Reporter::report_to_owner(const std::string& line) {
  const std::string marked = "PRIVATE " + line;
  if (terminal_ && !quiet_)
    info(marked);
  else
    to_file(Level::info, marked);
}

void Reporter::log_end(const std::string& line) { to_file(Level::error, line); }

void Reporter::progress(const Progress& p) {
  const int tenths = p.steps ? static_cast<int>(10 * p.step / p.steps) : 10;
  const bool next_tenth = std::exchange(tenths_, tenths) != tenths;
  if (next_tenth) to_file(Level::info, progress_text(p));
  if (!has_bar()) {
    if (next_tenth)
      to_stderr(Level::info, form_ == LogForm::json ? progress_text(p) : progress_line(p, 200));
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (p.step < p.steps && now - last_drawn_ < kRedraw) return;
  last_drawn_ = now;
  const bool done = p.step == p.steps;  // the last bar stays
  std::fprintf(stderr, "\r%s\033[K%s",
               progress_line(p, std::max(terminal_width(STDERR_FILENO), 1) - 1).c_str(),
               done ? "\n" : "");
  std::fflush(stderr);
  bar_shown_ = !done;
}

void Reporter::work(const std::string& what, double share) {
  if (!has_bar()) return;
  if (share >= 1.0) return clear_bar();
  const auto now = std::chrono::steady_clock::now();
  if (now - last_drawn_ < kRedraw) return;
  last_drawn_ = now;
  std::fprintf(stderr, "\r%s: %.0f %%\033[K", what.c_str(), 100.0 * share);
  std::fflush(stderr);
  bar_shown_ = true;
}

void Reporter::show_timings(bool are_public) {
  for (const std::string& line : timings_table(*timings_))
    are_public ? info(line) : report_to_owner(line);
}

void Reporter::clear_bar() {
  if (!bar_shown_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  bar_shown_ = false;
}

}  // namespace cudp
