#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/cli/setting_lists.hpp"
#include "runtime/python/module.hpp"
#include "runtime/python/settings.hpp"
#include "runtime/run/reservation.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/tune/request.hpp"

namespace nb = nanobind;

namespace cudp::python {
namespace {

/// Throws InputError if `key` is a setting of `cudp tune` that is for the command line only, such
/// as "json", so that Python must not pass it among the settings.
void check_tuning_key(const std::string& key) {
  for (const char* const other : {"file", "out", "resume", "resume-or-start", "json", "quiet"})
    if (key == other)
      throw InputError("--" + key +
                       ": expected on the command line only, found in Python (cudp.tune with "
                       "the same arguments and out=FOLDER continues a tuning)");
}

/// Converts settings of a tuning that Python passed as a dict. A whole number becomes a
/// floating-point number if the setting takes any number, as on the command line.
Settings tuning_settings(const nb::dict& given) {
  std::vector<Option> options = list_options();
  options.insert(options.end(), tune_options().begin(), tune_options().end());
  Settings settings = settings_of(given, options, "tune");
  for (auto& [key, setting] : settings) {
    check_tuning_key(key);
    const Option* const option = swept_option(key);
    const auto* const whole = std::get_if<std::int64_t>(&setting.value);
    if (option != nullptr && option->kind == ValueKind::number && whole != nullptr)
      setting.value = static_cast<double>(*whole);
  }
  return settings;
}

/// Adds one value of a setting to the request. If it is a setting of trainings, the value is added
/// to the values to try; otherwise it is a setting of the tuning itself.
void add_value(const std::string& key, const Setting& setting, TuneRequest& request) {
  TrainConfig checked;
  if (const Option* const option = swept_option(key); option != nullptr) {
    option->set(checked, setting.value, setting.place);
    request.lists[key].push_back(setting);
    return;
  }
  checked.of<TuneFlags>() = request.flags;
  find_option(tune_options(), key)->set(checked, setting.value, setting.place);
  request.flags = checked.of<TuneFlags>();
}

/// Returns the TOML text of a tuning, which `cudp tune FILE` reads, and checks its settings without
/// reading data. given: settings with one value. grid: settings with a list of values. file: path
/// of a TOML file with further settings, or "".
std::string tune_file(const nb::dict& given, const nb::dict& grid, const std::string& file) {
  TuneRequest request;
  const Settings settings = tuning_settings(given);
  for (const auto& [key, setting] : settings) add_value(key, setting, request);
  for (const auto& [name, values] : grid) {
    std::string key;
    for (const nb::handle value : values) {
      nb::dict one;
      one[name] = value;
      for (const auto& [found, setting] : tuning_settings(one)) {
        if (swept_option(found) == nullptr || settings.contains(found))
          throw InputError(
              setting.place +
              ": expected in the grid or among the other settings, and a setting of the "
              "trainings, found " +
              (settings.contains(found) ? "it in both" : "one of the tuning"));
        add_value(key = found, setting, request);
      }
    }
    if (key.empty())
      throw InputError("grid: expected at least one value of '" + nb::cast<std::string>(name) +
                       "', found none");
    check_distinct(request.lists[key]);
  }
  const nb::gil_scoped_release without_gil;
  if (!file.empty()) add_tune_file(read_user_file(file), file, settings, request);
  const TuneSettings complete = tune_settings(request);
  std::vector<std::string> notes;
  (void)candidates_of(complete, complete.epsilon, complete.delta, notes);
  return tune_text(request);
}

/// Charges the cost of trainings that together are (epsilon, delta)-DP to budget files, and syncs
/// the files to disk. unit: description of the unit of privacy, from protected_unit(). Throws
/// BudgetError if a budget does not suffice; then nothing is charged.
void charge_stated(const std::vector<std::string>& budgets, const std::string& unit, double epsilon,
                   double delta, const std::string& note) {
  const nb::gil_scoped_release without_gil;
  Reservation({budgets}, note).charge_stated(unit, epsilon, delta);
}

/// Throws the error with which a cudp process ended, of the class that fits its exit code. text:
/// its message. code: its exit code.
void raise_program_error(const std::string& text, int code) {
  switch (code) {
    case static_cast<int>(Exit::bad_input):
      throw InputError(text);
    case static_cast<int>(Exit::over_budget):
      throw BudgetError(text);
    case static_cast<int>(Exit::again):
      throw Error(text, Exit::again);
    default:
      throw Error(text, Exit::failure);
  }
}

}  // namespace

void bind_tuning(nb::module_& m) {
  m.def("tune_file", &tune_file);
  m.def("charge_stated", &charge_stated);
  m.def("raise_program_error", &raise_program_error);
}

}  // namespace cudp::python
