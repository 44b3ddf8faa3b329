#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "privacy/accountant.hpp"
#include "runtime/cli/accountant.hpp"
#include "runtime/python/module.hpp"
#include "runtime/python/settings.hpp"

namespace nb = nanobind;

namespace cudp::python {
namespace {

std::string text_of(const Answer& answer) {
  return answer.json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<privacy::Release> releases_of(const std::string& json) {
  return json.empty() ? std::vector<privacy::Release>() : read_phases(json, "releases");
}

/// Returns the output of `cudp account` as JSON. given: the settings. releases: a list of releases
/// as JSON, or "".
std::string account(const nb::dict& given, const std::string& releases) {
  TrainConfig config = config_of(given, account_options(), "account");
  const nb::gil_scoped_release without_gil;
  config.of<AccountantFlags>().releases = releases_of(releases);
  return text_of(account_answer(config));
}

std::string calibrate(const nb::dict& given) {
  const TrainConfig config = config_of(given, calibrate_options(), "calibrate");
  const nb::gil_scoped_release without_gil;
  return text_of(calibrate_answer(config));
}

/// A privacy::Accountant for Python. It converts exceptions to cudp's errors for users
/// (for_user()). Thread-safe.
class PythonAccountant {
 public:
  PythonAccountant(const std::string& releases, const nb::dict& given) {
    const AccountantFlags flags =
        config_of(given, accountant_rows(false), "Accountant").of<AccountantFlags>();
    const nb::gil_scoped_release without_gil;
    for_user([&] {
      accountant_ = std::make_unique<privacy::Accountant>(
          composition_of(flags, releases_of(releases)), bound_options(flags));
    });
  }

  std::vector<privacy::PrivacyBound> epsilons(const std::vector<double>& deltas) {
    const std::lock_guard one(mutex_);
    std::vector<privacy::PrivacyBound> found;
    for_user([&] { found = accountant_->epsilons(deltas); });
    return found;
  }
  std::vector<privacy::PrivacyBound> deltas(const std::vector<double>& epsilons) {
    const std::lock_guard one(mutex_);
    std::vector<privacy::PrivacyBound> found;
    for_user([&] { found = accountant_->deltas(epsilons); });
    return found;
  }
  /// Return the bounds on epsilon at a given delta, and on delta at a given epsilon, as `cudp
  /// account` computes them.
  privacy::PrivacyBound epsilon(double delta) {
    const std::lock_guard one(mutex_);
    privacy::PrivacyBound found;
    for_user([&] { found = accountant_->epsilon(delta); });
    return found;
  }
  privacy::PrivacyBound delta(double epsilon) {
    const std::lock_guard one(mutex_);
    privacy::PrivacyBound found;
    for_user([&] { found = accountant_->delta(epsilon); });
    return found;
  }

 private:
  std::mutex mutex_;
  std::unique_ptr<privacy::Accountant> accountant_;
};

}  // namespace

void bind_accounting(nb::module_& m) {
  m.def("account", &account);
  m.def("calibrate", &calibrate);

  using privacy::PrivacyBound;
  nb::class_<PrivacyBound>(m, "PrivacyBound")
      .def_ro("epsilon", &PrivacyBound::epsilon)
      .def_ro("delta", &PrivacyBound::delta)
      .def_ro("epsilon_lower", &PrivacyBound::epsilon_lower)
      .def_ro("delta_lower", &PrivacyBound::delta_lower)
      .def_ro("epsilon_add", &PrivacyBound::epsilon_add)
      .def_ro("epsilon_remove", &PrivacyBound::epsilon_remove)
      .def_ro("delta_add", &PrivacyBound::delta_add)
      .def_ro("delta_remove", &PrivacyBound::delta_remove)
      .def_ro("interval", &PrivacyBound::interval)
      .def_ro("order", &PrivacyBound::order)
      .def_ro("group", &PrivacyBound::group)
      .def_prop_ro("bound",
                   [](const PrivacyBound& b) { return std::string(privacy::bound_name(b)); });

  const nb::call_guard<nb::gil_scoped_release> without_gil;
  nb::class_<PythonAccountant>(m, "Accountant")
      .def(nb::init<const std::string&, const nb::dict&>())
      .def("epsilon", &PythonAccountant::epsilon, without_gil)
      .def("delta", &PythonAccountant::delta, without_gil)
      .def("epsilons", &PythonAccountant::epsilons, without_gil)
      .def("deltas", &PythonAccountant::deltas, without_gil);
}

}  // namespace cudp::python
