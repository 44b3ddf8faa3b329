#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>
#include <sys/types.h>
#include <unistd.h>

#include "privacy/certificate/certificate.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/error.hpp"
#include "runtime/python/arrays.hpp"
#include "runtime/python/module.hpp"
#include "runtime/python/settings.hpp"
#include "runtime/results/metrics.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/run/run.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/training/loaded_data.hpp"

namespace nb = nanobind;

namespace cudp::python {
namespace {

/// Callbacks with which Python trains a run in its own process. They call pending Python signal
/// handlers, at most once in 50 ms, and pass each line of metrics to a Python function. If a
/// handler or that function raises an exception, the training stops.
class PythonCaller final : public RunCaller {
 public:
  /// Makes the callbacks. on_row: Python function that is called with each public line of metrics,
  /// as JSON; or None. It must outlive this object.
  explicit PythonCaller(nb::handle on_row) : on_row_(on_row) {}

  bool interrupts() override {
    if (raised_) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_look_) return false;
    next_look_ = now + std::chrono::milliseconds(50);
    const nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) keep_error();
    return raised_.has_value();
  }

  void measured(const std::vector<MetricsRow>& rows) override {
    if (on_row_.is_none()) return;
    const nb::gil_scoped_acquire gil;
    for (; seen_ < rows.size() && !raised_; ++seen_) {
      try {
        on_row_(encode_metrics({rows[seen_]}));
      } catch (nb::python_error& e) {
        raised_.emplace(std::move(e));
      }
    }
    seen_ = rows.size();
  }

  /// Throws the exception that Python code has raised in the meantime, except KeyboardInterrupt: in
  /// that case the run's own error is thrown, which states how to resume. Requires the GIL.
  void raise_unless_interrupt() {
    if (!raised_ || raised_->matches(PyExc_KeyboardInterrupt)) return;
    nb::python_error raised = std::move(*raised_);
    raised_.reset();
    throw raised;  // NOLINT: python_error is copied as nanobind does
  }

 private:
  void keep_error() {
    try {
      nb::raise_python_error();
    } catch (nb::python_error& e) {
      raised_.emplace(std::move(e));
    }
  }

  nb::handle on_row_;
  std::optional<nb::python_error> raised_;
  std::size_t seen_ = 0;  // rows that on_row was called with
  std::chrono::steady_clock::time_point next_look_{};
};

/// Time for which a run in a temporary folder writes its files without waiting for the disk
/// [seconds].
constexpr double kUnsyncedSeconds = 10.0;

/// Throws InputError on settings of `cudp train` that are for the command line only, such as
/// --json, and on more than one rank.
void check_settings(const Settings& settings) {
  for (const char* const key : {"json", "log-json", "quiet", "resume", "resume-or-start"})
    if (settings.contains(key))
      throw InputError(std::string("--") + key + ": expected on the command line only, found in " +
                       "Python (cudp.resume resumes a run, verbose=True prints)");
  if (const auto ranks = settings.find("ranks");
      ranks != settings.end() && ranks->second.value != Value(std::int64_t{1}))
    throw InputError(
        "--ranks: expected 1 in Python, since ranks are processes of the program, "
        "found " +
        value_text(ranks->second.value));
}

/// Converts the arrays of a training from Python: (X, y) of the training set, and (X, y) of the
/// test set; either may be None. Returns null if there is no training array.
std::shared_ptr<const GivenArrays> given_arrays(nb::handle train, nb::handle test) {
  if (train.is_none()) return nullptr;
  auto arrays = std::make_shared<GivenArrays>();
  const auto pair = [](nb::handle both, const std::string& suffix) {
    return labelled_arrays(both[0], both[1], suffix);
  };
  arrays->train = pair(train, "");
  if (!test.is_none()) arrays->test = pair(test, " of test_data");
  return arrays;
}

/// Returns an error message with the command that resumes a run replaced by the call in Python that
/// does the same.
std::string in_python(std::string line) {
  static constexpr std::string_view kResume = "cudp train --resume ";
  const std::size_t at = line.find(kResume);
  if (at == std::string::npos) return line;
  const std::string path = line.substr(at + kResume.size());
  return line.replace(at, std::string::npos,
                      "cudp.resume('" + path + "'), with the same (X, y) if it is on arrays");
}

/// Returns the cache of accountant results of this process, which all its trainings share, because
/// many have the same public settings. A forked process gets a new cache, because a thread of its
/// parent may have been using the old one. Requires the GIL.
std::shared_ptr<privacy::AccountantMemo> memo_of_process() {
  static std::shared_ptr<privacy::AccountantMemo> memo;
  static pid_t owner = 0;
  if (owner != ::getpid()) {
    // The parent's cache is never destroyed in the child, because a thread of the parent may have
    // held its lock.
    if (memo != nullptr) new std::shared_ptr<privacy::AccountantMemo>(std::move(memo));
    memo = memo_for_trainings();
    owner = ::getpid();
  }
  return memo;
}

/// Trains, and returns the path of the run's folder. start: function that makes a new run, or opens
/// one to resume it.
template <class Start>
std::string train_run(nb::handle on_row, bool verbose, DrawPictures draw, const Start& start) {
  PythonCaller caller(on_row);
  std::string folder;
  std::exception_ptr failed;
  keep_environment();  // for gnuplot: while this thread holds the GIL, os.environ does not change
  {
    const nb::gil_scoped_release without_gil;
    try {
      std::optional<Reporter> reporter;
      if (verbose)
        reporter.emplace(false);
      else
        reporter.emplace(Reporter::Silent{});
      const std::unique_ptr<Run> run = start(*reporter, caller);
      folder = train(*run, draw).run_dir;
    } catch (const Error& e) {
      failed = e.code() == Exit::again
                   ? std::make_exception_ptr(Error(in_python(e.what()), Exit::again))
                   : std::current_exception();
    } catch (const std::domain_error& e) {  // no amount of noise meets the budget
      failed = std::make_exception_ptr(BudgetError(e.what()));
    } catch (...) {
      failed = std::current_exception();
    }
  }
  if (failed) {
    caller.raise_unless_interrupt();
    std::rethrow_exception(failed);
  }
  return folder;
}

std::string train_new(const nb::dict& given, nb::handle data, nb::handle test, nb::handle on_row,
                      bool verbose, const std::vector<std::string>& budgets, bool pictures,
                      bool temporary) {
  const Settings settings = settings_of(given, train_options(), "train");
  check_settings(settings);
  const ArraysInUse arrays{given_arrays(data, test)};
  const auto memo = memo_of_process();
  const DrawPictures draw = pictures ? DrawPictures::yes : DrawPictures::no;
  return train_run(on_row, verbose, draw, [&](Reporter& reporter, RunCaller& caller) {
    std::vector<std::string> notes;
    TrainConfig config = resolve_config(settings, notes);
    for (const std::string& note : notes) reporter.info(note);
    config.of<ArraysInUse>() = arrays;
    config.of<BudgetsInUse>().files = budgets;
    config.of<MemoInUse>().memo = memo;
    if (temporary) config.of<UnsyncedStart>().seconds = kUnsyncedSeconds;
    return start_run(config, reporter, nullptr, alone(), &caller);
  });
}

std::string train_on(const std::string& run, const nb::dict& given, nb::handle data,
                     nb::handle test, nb::handle on_row, bool verbose,
                     const std::vector<std::string>& budgets) {
  Settings settings = settings_of(given, train_options(), "train");
  check_settings(settings);
  settings["resume"] = {run, "--resume"};
  const ArraysInUse arrays{given_arrays(data, test)};
  if (finished_result(settings)) {
    if (verbose) Reporter(false).info(run + " is complete; nothing to do");
    return run;
  }
  return train_run(on_row, verbose, DrawPictures::yes, [&](Reporter& reporter, RunCaller& caller) {
    return resume_run(settings, reporter, nullptr, alone(), &caller, arrays, {budgets});
  });
}

/// Returns whether `path` is the folder of a run that has not ended. Throws InputError if it is the
/// folder of a training that `cudp tune` started.
bool is_interrupted(const std::string& path) {
  check_not_of_tuning(path);
  const RunFolder folder(path);
  return std::filesystem::exists(folder.ledger()) && !std::filesystem::exists(folder.result());
}

/// Returns the keys of the settings of a training that are switched on, e.g. "size-is-public".
std::vector<std::string> toggles() {
  std::vector<std::string> names;
  for (const Option& option : train_options())
    if (option.kind == ValueKind::toggle) names.push_back(option.key);
  return names;
}

/// Converts the text of a certificate, perhaps of an earlier version of the program, to the present
/// format. Throws InputError if the text is not a certificate.
std::string certificate(const std::string& text, const std::string& source) {
  try {
    return to_json(privacy::read_certificate(text)).dump();
  } catch (const std::invalid_argument& e) {
    throw InputError(source + ": " + e.what());
  }
}

}  // namespace

void bind_training(nb::module_& m) {
  m.def("train", &train_new, nb::arg("settings"), nb::arg("data").none(), nb::arg("test").none(),
        nb::arg("on_row").none(), nb::arg("verbose"), nb::arg("budgets"), nb::arg("pictures"),
        nb::arg("temporary"));
  m.def("resume", &train_on, nb::arg("run"), nb::arg("settings"), nb::arg("data").none(),
        nb::arg("test").none(), nb::arg("on_row").none(), nb::arg("verbose"), nb::arg("budgets"));
  m.def("is_interrupted", &is_interrupted);
  m.def("certificate", &certificate);
  m.def("toggles", &toggles);
}

}  // namespace cudp::python
