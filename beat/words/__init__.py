"""What the faces say: times, verdicts, policies and states in sentences for people, and as plain data for programs."""
