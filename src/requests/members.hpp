// SPDX-License-Identifier: Apache-2.0
// The members of each request, in the order in which help shows them. What reads, writes or renders requests, or adds
// options to a command line, goes by these lists.
#pragma once

#include <vector>

#include "requests/member.hpp"
#include "requests/request.hpp"

namespace strata::requests {

// They refer to the request, which outlives them.
std::vector<Member> members_of(CompareRequest& request);
std::vector<Member> members_of(SweepRequest& request);
std::vector<Member> members_of(TrainRequest& request);
std::vector<Member> members_of(ExportRequest& request);
std::vector<Member> members_of(GenerateRequest& request);
std::vector<Member> members_of(Request& request);
std::vector<Member> members_of(SuiteRequest& request);
std::vector<Member> members_of(PackRequest& request);
std::vector<Member> members_of(ShowRequest& request);
std::vector<Member> members_of(RunsRequest& request);
std::vector<Member> members_of(DiffRequest& request);
std::vector<Member> members_of(CommandsRequest& request);
std::vector<Member> members_of(DataRequest& request);  // its action, first, and those that this action has

// Of any verb that captures a network: --input, --size, --inputs, --input-from, --synthetic, --weights, --seed and the
// limits of these files; --fresh and --timeout. `inputs`: how help calls them, as "your inputs".
std::vector<Member> members_of_inputs(plan::Options& options, const std::string& inputs);
std::vector<Member> members_of_capture(plan::Options& options);
Member member_of_single_batch(std::vector<int>& batches);  // one, or the model's own
Member member_of_python(std::string& python);
Member member_of_environments(std::vector<plan::NamedPython>& named);
Member member_of_levels(std::vector<std::string>& levels, const std::string& help);

// --device, of any verb that has it; `what`: what runs there, as "levels run".
Member member_of_device(std::string& device, const char* what);

// Where data sets lie and what is done with their bad files, of any verb that reads one.
Member member_of_data_dir(std::string& folder);
Member member_of_skip_bad(bool& skip);

}  // namespace strata::requests
