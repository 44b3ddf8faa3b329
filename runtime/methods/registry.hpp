#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/methods/method_entry.hpp"

namespace cudp {

/// Returns the entries of all training methods, in the order in which --help lists their options.
const std::vector<MethodEntry>& methods();
std::vector<std::string> method_names();

/// Returns the entry of a training method; null if there is no method of that name.
const MethodEntry* find_method(std::string_view name);
/// Returns the entry of a training method. Throws InputError if there is no method of that name.
const MethodEntry& method_entry(std::string_view name);

/// Returns whether the method uses an option. True for options that do not belong to particular
/// methods.
bool takes(const MethodEntry& method, std::string_view key);
/// Returns whether a resolved config of this method may contain the option, although it has no
/// effect.
bool ignores(const MethodEntry& method, std::string_view key);

}  // namespace cudp
