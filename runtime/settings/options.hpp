#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/option.hpp"

namespace cudp {

/// Returns all options of `cudp train`: general ones, and those of each training method (DP-SGD,
/// DPIS, ...).
const std::vector<Option>& train_options();

/// Returns the option with this key (its name, such as "batch") in the list `options`; null if
/// there is none.
const Option* find_option(const std::vector<Option>& options, std::string_view key);
/// Returns the option of `cudp train` with this key (its name, such as "batch"); null if there is
/// none.
const Option* find_option(std::string_view key);

std::vector<std::string> option_keys();

}  // namespace cudp
