#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/methods/method_entry.hpp"

namespace cudp {

/// Returns the entries of all training methods, in the order in which --help lists their options.
const std::vector<MethodEntry>& methods();
std::vector<std::string> method_names();

/// Returns the registry entry of a training method, or null if there is no method of that name.
const MethodEntry* find_method(std::string_view name);
/// Returns the registry entry of a training method. Throws InputError if there is no method of that
/// name.
const MethodEntry& method_entry(std::string_view name);

/// Returns whether this method uses the option with this key (its name in config files, e.g.
/// "clip"). True for every option that is not specific to some methods, such as "seed".
bool takes(const MethodEntry& method, std::string_view key);
/// Returns whether a config file for this method may contain the option with this key although the
/// option has no effect on the method.
bool ignores(const MethodEntry& method, std::string_view key);

}  // namespace cudp
