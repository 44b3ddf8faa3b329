#include "runtime/run/metrics_file.hpp"

#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/number_text.hpp"

namespace cudp {
namespace {

/// Minimum time between two updates of the progress file, except at a checkpoint and at the end.
constexpr auto kRewrite = std::chrono::seconds(1);

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Returns a text in quotes and escaped, for use as the value of a Prometheus label.
std::string label(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string MetricsFile::text(const std::string& run, const Progress& p, bool running,
                              std::optional<double> checkpoint, double now) {
  std::string all;
  const auto add = [&](const char* name, const char* help, double value) {
    all += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{0}{{run=\"{2}\"}} {3}\n", name, help,
                       label(run), number_text(value));
  };
  add("cudp_running", "1 while the training runs, 0 after its end or an interruption.",
      running ? 1.0 : 0.0);
  add("cudp_steps", "Training steps made.", static_cast<double>(p.step));
  add("cudp_steps_planned", "Training steps of the whole run.", static_cast<double>(p.steps));
  add("cudp_examples_per_second", "Expected batch size times steps per second.",
      p.examples_per_second);
  if (p.epsilon)
    add("cudp_epsilon_spent", "Epsilon spent by the last evaluation, at the run's delta.",
        *p.epsilon);
  if (checkpoint)
    add("cudp_checkpoint_timestamp_seconds",
        "Time of the last checkpoint; its age is time() minus this.", *checkpoint);
  add("cudp_updated_timestamp_seconds", "Time at which this file was written.", now);
  return all;
}

MetricsFile::MetricsFile(std::filesystem::path path, const std::string& run, Reporter& reporter)
    : path_(std::move(path)), run_(run), reporter_(reporter) {
  try {
    replace_file(path_, text(run_, progress_, true, checkpoint_, seconds_since_1970()));
  } catch (const Error& e) {
    throw InputError(std::string("--metrics-file: expected a file that can be written, found ") +
                     e.what());
  }
}

void MetricsFile::progressed(const Progress& progress) {
  progress_ = progress;
  if (std::chrono::steady_clock::now() - written_ >= kRewrite) write(true);
}

void MetricsFile::checkpointed() {
  checkpoint_ = seconds_since_1970();
  write(true);
}

void MetricsFile::ended() { write(false); }

void MetricsFile::write(bool running) {
  written_ = std::chrono::steady_clock::now();
  try {
    replace_file(path_, text(run_, progress_, running, checkpoint_, seconds_since_1970()));
  } catch (const Error& e) {  // a training does not fail because its progress file does
    if (!std::exchange(failed_, true)) reporter_.warn(std::string("--metrics-file: ") + e.what());
  }
}

}  // namespace cudp
