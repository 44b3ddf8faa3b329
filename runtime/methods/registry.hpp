#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/methods/method_entry.hpp"

namespace cudp {

/// Every method, in the order in which their options are listed.
const std::vector<MethodEntry>& methods();
std::vector<std::string> method_names();

/// Null if there is none of that name.
const MethodEntry* find_method(std::string_view name);
/// Throws InputError if there is none.
const MethodEntry& method_entry(std::string_view name);

/// Whether the method looks at an option; true for those that are of no method in particular.
bool takes(const MethodEntry& method, std::string_view key);
/// Whether a resolved config of this method may hold the option, with whatever value.
bool may_find(const MethodEntry& method, std::string_view key);

}  // namespace cudp
