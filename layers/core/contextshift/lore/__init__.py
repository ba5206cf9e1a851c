"""Cards and lorebooks: what chat applications bring, and which of it a conversation wakes."""
