"""What a person can ask about a jail: doctor, explain, audit, ps."""
