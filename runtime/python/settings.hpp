#pragma once
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "runtime/settings/settings.hpp"

namespace cudp::python {

/// Converts a dict of bool, int, float and str, passed by Python, to settings. Error messages name
/// a setting by its flag ("--epsilon"), like those of the program. "_" in a key counts as "-".
/// options: the options that are allowed. command: name of the command, for messages. Throws
/// InputError on an unknown key; the message suggests the nearest known one.
Settings settings_of(const nanobind::dict& given, const std::vector<Option>& options,
                     const std::string& command);

/// Returns a config with the settings that Python passed as a dict to a command other than `train`.
/// given: keys and values. options: the options that are allowed. command: name of the command, for
/// messages. Throws InputError on an unknown key or a value that is not valid.
TrainConfig config_of(const nanobind::dict& given, const std::vector<Option>& options,
                      const std::string& command);

}  // namespace cudp::python
